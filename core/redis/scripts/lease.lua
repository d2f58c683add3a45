#!lua
-- Leases due deliveries of the named endpoints: first attempts before retries, in turn over the endpoints.
--
-- KEYS[1]  endpoints with first attempts (sorted set by turn)    KEYS[2]  endpoints with retries (sorted set by due time)
-- KEYS[3]  leases: `endpoint delivery lease` (sorted set by their end)
-- KEYS[4]  deliveries under way per endpoint (hash)              KEYS[5]  counter of turns and leases
-- KEYS[6]  failing endpoints (sorted set)
-- then, for each endpoint of ARGV: its first attempts (list) or its retries (sorted set by due time)
-- ARGV[1]  the service clock, milliseconds: what retries are due by
-- ARGV[2]  milliseconds a lease lasts, by the clock of Redis, so that a moved test clock ends no lease
-- ARGV[3]  deliveries wanted, 1,000 at most    ARGV[4]  of them for failing endpoints
-- ARGV[5]  under way per endpoint              ARGV[6]  the same for a failing one
-- ARGV[7]  where the scores of failing endpoints begin in the rings
-- ARGV[8]  how many of the endpoints that follow, 400 at most, are named for their first attempts; the others for their retries
--
-- The endpoints come from `look.lua`, and anything that has changed since is checked again here. One at its limit leaves the rings;
-- finishing one of its deliveries brings it back. One held back only by the budget for failing ones comes after the healthy ones.
-- No key is touched again once it may be empty: while its slot is being migrated, a missing key counts as moved.
--
-- Reply: '1' when healthy endpoints still have first attempts, else '0';
--   the deliveries as one text, for each four lines: endpoint, delivery, lease, '1' when the endpoint is failing, else '0'.
local firstRing, retryRing, leases, flight, turns, failing = unpack(KEYS, 1, 6)
local FIXED_KEYS, FIXED_ARGUMENTS, MOST, MOST_ENDPOINTS = 6, 8, 1000, 400
local call, numbers = redis.call, {}
for at = 1, FIXED_ARGUMENTS do numbers[at] = assert(tonumber(ARGV[at]), 'an argument is no number') end
local now, lasts, left, leftFailing, limit, failingLimit, failingFrom, firsts = unpack(numbers)
local names = #ARGV - FIXED_ARGUMENTS
assert(left <= MOST and names <= MOST_ENDPOINTS and firsts <= names and #KEYS == FIXED_KEYS + names, 'malformed arguments')
if names == 0 then return { '0', '' } end

local ids, known = { unpack(ARGV, FIXED_ARGUMENTS + 1) }, {}
local underWay, since = call('HMGET', flight, unpack(ids)), call('ZMSCORE', failing, unpack(ids))
local stands = call('ZMSCORE', firstRing, unpack(ids))
for at, id in ipairs(ids) do
  local fails, before = since[at] ~= false, tonumber(underWay[at]) or 0
  known[id] = { fails = fails, before = before, taken = 0, room = (fails and failingLimit or limit) - before }
end

-- One for each lane in turn, repeated as needed; `order` records whose turn it was.
local order = {}
local function deal(lanes)
  repeat
    local before = left
    for _, lane in ipairs(lanes) do
      local one = lane.of
      if left > 0 and lane.share < lane.has and one.taken < one.room and not (one.fails and leftFailing <= 0) then
        lane.share, one.taken, left = lane.share + 1, one.taken + 1, left - 1
        if one.fails then leftFailing = leftFailing - 1 end
        order[#order + 1] = lane
      end
    end
  until left == before
end

local function keeps(lane) return lane.of.taken < lane.of.room and lane.has > lane.share end

-- Healthy endpoints that are in the ring after this call: those that are not named, and those that have something left.
local firstLanes, retryLanes, healthy = {}, {}, call('ZCOUNT', firstRing, '-inf', '(' .. ARGV[7])
for at = 1, firsts do
  local lane = { id = ids[at], of = known[ids[at]], queue = KEYS[FIXED_KEYS + at], stands = tonumber(stands[at]), share = 0 }
  lane.has = lane.of.room > 0 and call('LLEN', lane.queue) or 0
  if lane.stands and lane.stands < failingFrom then healthy = healthy - 1 end
  firstLanes[at] = lane
end
deal(firstLanes)
for _, lane in ipairs(firstLanes) do
  if keeps(lane) and not lane.of.fails then healthy = healthy + 1 end
end

-- Read one more per lane than it may send: the one that stays and is due next.
for at = firsts + 1, healthy > 0 and 0 or names do
  local lane = { id = ids[at], of = known[ids[at]], retries = KEYS[FIXED_KEYS + at], share = 0, has = 0, own = {} }
  local most = math.max(0, math.min(lane.of.room - lane.of.taken, left))
  lane.rows = call('ZRANGE', lane.retries, 0, most, 'WITHSCORES')
  while lane.has < most and (tonumber(lane.rows[2 * lane.has + 2]) or math.huge) <= now do lane.has = lane.has + 1 end
  retryLanes[#retryLanes + 1] = lane
end
deal(retryLanes)

-- Writes begin here.
local turn = call('INCRBY', turns, #order + firsts) - #order - firsts
local function nextTurn() turn = turn + 1 return turn end
for _, lane in ipairs(firstLanes) do lane.own = lane.share > 0 and call('LPOP', lane.queue, lane.share) end
for _, lane in ipairs(retryLanes) do
  for place = 1, lane.share do lane.own[place] = lane.rows[2 * place - 1] end
  if lane.share > 0 then call('ZREM', lane.retries, unpack(lane.own)) end
end

local time = call('TIME')
local ends, leased, rows, flights = time[1] * 1000 + math.floor(time[2] / 1000) + lasts, {}, {}, {}
for at, lane in ipairs(order) do
  lane.given = (lane.given or 0) + 1
  local delivery, lease = lane.own[lane.given], string.format('%.0f', nextTurn())
  leased[2 * at - 1], leased[2 * at] = ends, lane.id .. ' ' .. delivery .. ' ' .. lease
  flights[2 * at - 1], flights[2 * at] = lane.id, lane.of.before + lane.of.taken
  rows[at] = lane.id .. '\n' .. delivery .. '\n' .. lease .. '\n' .. (lane.of.fails and '1' or '0')
end
if #order > 0 then
  call('ZADD', leases, unpack(leased))
  call('HSET', flight, unpack(flights))
end

-- New positions of the endpoints: those that were served come after the others of their kind.
local function stand(ring, lanes, scoreOf)
  local stay, gone = {}, {}
  for _, lane in ipairs(lanes) do
    local score = scoreOf(lane)
    if score then stay[#stay + 1], stay[#stay + 2] = score + (lane.of.fails and failingFrom or 0), lane.id
    else gone[#gone + 1] = lane.id end
  end
  if #stay > 0 then call('ZADD', ring, unpack(stay)) end
  if #gone > 0 then call('ZREM', ring, unpack(gone)) end
end
stand(firstRing, firstLanes, function(lane)
  return keeps(lane) and ((lane.share > 0 or not lane.stands) and nextTurn() or lane.stands % failingFrom)
end)
stand(retryRing, retryLanes, function(lane)
  return lane.of.taken < lane.of.room and lane.rows[2 * lane.share + 2]
end)
return { healthy > 0 and '1' or '0', table.concat(rows, '\n') }
