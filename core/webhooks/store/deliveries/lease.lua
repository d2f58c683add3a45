#!lua
-- Leases due deliveries of the named endpoints, in turn over the endpoints: first attempts before retries or after them.
--
-- KEYS[1]  endpoints with first attempts (sorted set by turn)    KEYS[2]  endpoints with retries (sorted set by due time)
-- KEYS[3]  leases: `endpoint delivery lease` (sorted set by their end)
-- KEYS[4]  under way per endpoint (hash): in slots under its id, outside of them under `w <id>`
-- KEYS[5]  counter of turns and leases    KEYS[6]  failing endpoints (sorted set)
-- KEYS[7], KEYS[8], KEYS[9]  those of the part `endpoint-capacity`
-- then, for each endpoint of ARGV: its first attempts (list) or its retries (sorted set by due time)
-- ARGV[1]  the service clock, milliseconds: what retries are due by
-- ARGV[2]  milliseconds a lease lasts, by the clock of Redis: a moved test clock ends no lease
-- ARGV[3]  deliveries wanted, 1,000 at most    ARGV[4]  of them for failing endpoints    ARGV[5]  for silent endpoints besides,
--   1,000 at most: they take no slots, and their leases begin with 'w'
-- ARGV[6]  what a failing endpoint may have under way    ARGV[7]  a silent one
-- ARGV[8]  concurrency that an endpoint begins with      ARGV[9]  milliseconds an unused concurrency is kept
-- ARGV[10] where the scores of failing endpoints begin in the rings    ARGV[11] 1 when retries come first, else 0
-- ARGV[12] how many of the endpoints that follow, 400 at most, are named for their first attempts; the others for their retries
-- then the endpoints, then for each of them six numbers as one text: 1 when it is silent, else 0; its highest concurrency; the same
--   for its requests in and outside of slots together, 0 when there is no limit; burst and rate per second, 0 when there is none;
--   what this call may lease of it
--
-- The endpoints come from `look.lua`, and anything that has changed since is checked again here. One at its limit leaves the rings;
-- finishing one of its deliveries brings it back, or the end of its pause. One held back only by a budget comes after the healthy
-- ones. Retries that do not come first are leased only when no healthy endpoint has first attempts left.
-- No key is touched again once it may be empty: while its slot is being migrated, a missing key counts as moved.
--
-- Reply: '1' when healthy endpoints still have first attempts, else '0';
--   the deliveries as one text, for each four lines: endpoint, delivery, lease, '1' when the endpoint is failing, else '0';
--   when the first of the pauses that this call has made ends, '' when it made none.
local firstRing, retryRing, leases, flight, turns, failing = unpack(KEYS, 1, 6)
local FIXED_KEYS, FIXED_ARGUMENTS, MOST, MOST_ENDPOINTS = 9, 12, 1000, 400
-- How long an endpoint waits whose tenant has its share of this process: others may lease of it after that.
local SHARE_PAUSE_MS, call, numbers = 5, redis.call, {}
for at = 1, FIXED_ARGUMENTS do numbers[at] = assert(tonumber(ARGV[at]), 'malformed arguments') end
local now, lasts, left, leftFailing, leftSilent, failingLimit, silentLimit, startConcurrency, concurrencyLife = unpack(numbers)
local failingFrom, retriesFirst, firsts, names = numbers[10], numbers[11], numbers[12], (#ARGV - FIXED_ARGUMENTS) / 2
assert(math.max(left, leftSilent) <= MOST and names <= MOST_ENDPOINTS, 'malformed arguments')
assert(firsts <= names and #KEYS == FIXED_KEYS + names, 'malformed arguments')
if names == 0 then return { '0', '', '' } end
local ids, terms = { unpack(ARGV, FIXED_ARGUMENTS + 1, FIXED_ARGUMENTS + names) }, { unpack(ARGV, FIXED_ARGUMENTS + names + 1) }
-- part: endpoint-capacity

local known, stands = readCapacities(), call('ZMSCORE', firstRing, unpack(ids))
-- One for each queue in turn, repeated as needed; `order` records whose turn it was.
local order, firstQueues, retryQueues = {}, {}, {}
local function budgetOf(one) return one.isSilent and leftSilent or one.fails and math.min(left, leftFailing) or left end
local function deal(queues)
  repeat
    local before = #order
    for _, queue in ipairs(queues) do
      local one = queue.of
      if queue.share < queue.has and one.taken < one.capacity and budgetOf(one) > 0 then
        queue.share, one.taken, order[#order + 1] = queue.share + 1, one.taken + 1, queue
        if one.isSilent then leftSilent = leftSilent - 1 else left = left - 1 end
        if one.fails and not one.isSilent then leftFailing = leftFailing - 1 end
      end
    end
  until #order == before
end
local function keeps(queue) return queue.of.taken < queue.of.capacity and queue.has > queue.share end
-- Read one more per queue than it may send: the one that stays and is due next.
local function dealRetries()
  for at = firsts + 1, names do
    local queue = { id = ids[at], of = known[ids[at]], key = KEYS[FIXED_KEYS + at], share = 0, has = 0, own = {} }
    local most = math.max(0, math.min(queue.of.capacity - queue.of.taken, budgetOf(queue.of)))
    queue.rows = call('ZRANGE', queue.key, 0, most, 'WITHSCORES')
    while queue.has < most and (tonumber(queue.rows[2 * queue.has + 2]) or math.huge) <= now do queue.has = queue.has + 1 end
    retryQueues[#retryQueues + 1] = queue
  end
  deal(retryQueues)
end

if retriesFirst == 1 then dealRetries() end
-- Healthy endpoints that are in the ring after this call: those that are not named, and those that have something left.
local healthy = call('ZCOUNT', firstRing, '-inf', '(' .. ARGV[10])
for at = 1, firsts do
  local queue = { id = ids[at], of = known[ids[at]], key = KEYS[FIXED_KEYS + at], stands = tonumber(stands[at]), share = 0 }
  queue.has = queue.of.capacity > 0 and call('LLEN', queue.key) or 0
  if queue.stands and queue.stands < failingFrom then healthy = healthy - 1 end
  firstQueues[at] = queue
end
deal(firstQueues)
for _, queue in ipairs(firstQueues) do if keeps(queue) and not (queue.of.fails or queue.of.isSilent) then healthy = healthy + 1 end end
if retriesFirst ~= 1 and healthy == 0 then dealRetries() end

-- Writes begin here.
local turn = call('INCRBY', turns, #order + firsts) - #order - firsts
local function nextTurn() turn = turn + 1 return turn end
for _, queue in ipairs(firstQueues) do queue.own = queue.share > 0 and call('LPOP', queue.key, queue.share) end
for _, queue in ipairs(retryQueues) do
  for slot = 1, queue.share do queue.own[slot] = queue.rows[2 * slot - 1] end
  if queue.share > 0 then call('ZREM', queue.key, unpack(queue.own)) end
end

local time, leased, rows = call('TIME'), {}, {}
-- As a text: Redis writes a number of a script with 17 digits each time.
local ends = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + lasts)
for at, queue in ipairs(order) do
  queue.given = (queue.given or 0) + 1
  local delivery, lease = queue.own[queue.given], string.format(queue.of.isSilent and 'w%.0f' or '%.0f', nextTurn())
  leased[2 * at - 1], leased[2 * at] = ends, queue.id .. ' ' .. delivery .. ' ' .. lease
  rows[at] = queue.id .. '\n' .. delivery .. '\n' .. lease .. '\n' .. (queue.of.fails and '1' or '0')
end
if #order > 0 then call('ZADD', leases, unpack(leased)) call('HSET', flight, unpack(flightsOf(known))) end
-- New positions of the endpoints: those that were served come after the others of their kind.
local function stand(ring, queues, scoreOf)
  local stay, gone = {}, {}
  for _, queue in ipairs(queues) do
    local score, from = scoreOf(queue), queue.of.fails and failingFrom or 0
    if score then stay[#stay + 1], stay[#stay + 2] = score + from, queue.id else gone[#gone + 1] = queue.id end
  end
  if #stay > 0 then call('ZADD', ring, unpack(stay)) end
  if #gone > 0 then call('ZREM', ring, unpack(gone)) end
end
stand(firstRing, firstQueues, function(queue)
  return keeps(queue) and ((queue.share > 0 or not queue.stands) and nextTurn() or queue.stands % failingFrom)
end)
stand(retryRing, retryQueues, function(queue) return queue.of.taken < queue.of.capacity and queue.rows[2 * queue.share + 2] end)
return { healthy > 0 and '1' or '0', table.concat(rows, '\n'), pauseHeldBack(known) }
