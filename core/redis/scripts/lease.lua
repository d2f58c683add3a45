#!lua
-- Hands out due deliveries under a lease: first attempts of any endpoint before retries, in turn over the endpoints.
--
-- KEYS[1]  endpoints with first attempts (sorted set by turn)
-- KEYS[2]  endpoints with retries (sorted set by due time)
-- KEYS[3]  leases: `endpoint delivery lease` (sorted set by their end)
-- KEYS[4]  deliveries under way per endpoint (hash)
-- KEYS[5]  counter of turns and leases         KEYS[6]  failing endpoints (sorted set)
-- KEYS[7]  ledger (hash): `webhook:failed` grows by deliveries that are gone
-- ARGV[1]  hash tag of the partition; further keys of the same tag are built from it
-- ARGV[2]  the service clock, milliseconds: what retries are due by
-- ARGV[3]  milliseconds a lease lasts, by the clock of Redis, so that a moved test clock ends no lease
-- ARGV[4]  deliveries wanted, 1,000 at most    ARGV[5]  of them for failing endpoints
-- ARGV[6]  under way per endpoint              ARGV[7]  the same for a failing one
-- ARGV[8]  '1' when retries may be handed out: no partition had first attempts left a moment ago
--
-- A lease that has ended puts its delivery back where it was: what a killed process had under way is sent again.
-- An endpoint at its limit leaves the rings; finishing a delivery of its brings it back. A delivery is gone 30 days after
-- its creation, wherever it stands: it has failed then.
--
-- Reply: '1' when first attempts are left, else '0';
--   the shipments of the deliveries, for each four: id, record, state, statusUpdatedAt (as stored, null where missing);
--   the deliveries as one text, for each nine lines: delivery id, lease, generation, attempts made, '1' when its endpoint is
--   failing, else '0', place of its shipment in the list above, from 1, what it is but for its fact (words, as stored), its
--   fact (JSON; '' when one before it is of the same event), attempts (JSON); '' when there are none.
local firstRing, retryRing, leases, flight, turns, failing, ledger = unpack(KEYS)
local tag, now, lasts = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local wanted, wantedFailing = tonumber(ARGV[4]), tonumber(ARGV[5])
local limit, failingLimit = tonumber(ARGV[6]), tonumber(ARGV[7])
local ENDED_PER_CALL = 100

if redis.call('EXISTS', firstRing, retryRing, leases) == 0 then return { '0', {}, '' } end

local time = redis.call('TIME')
local clock = time[1] * 1000 + math.floor(time[2] / 1000)
local gone = 0

local function nextRetry(endpoint)
  local first = redis.call('ZRANGE', tag .. ':dr:' .. endpoint, 0, 0, 'WITHSCORES')
  if first[2] then redis.call('ZADD', retryRing, first[2], endpoint)
  else redis.call('ZREM', retryRing, endpoint) end
end

for _, member in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', clock, 'LIMIT', 0, ENDED_PER_CALL)) do
  local endpoint, delivery = string.match(member, '^(%S+) (%S+)')
  redis.call('ZREM', leases, member)
  if redis.call('HINCRBY', flight, endpoint, -1) <= 0 then redis.call('HDEL', flight, endpoint) end
  local queue = tag .. ':dq:' .. endpoint
  local state = redis.call('HMGET', tag .. ':d:' .. delivery, 's', 'd')
  if state[1] == 'queued' then redis.call('LPUSH', queue, delivery)
  elseif state[1] == 'waiting' then redis.call('ZADD', tag .. ':dr:' .. endpoint, state[2] or now, delivery)
  else gone = gone + 1 end
  if redis.call('EXISTS', queue) == 1 then
    redis.call('ZADD', firstRing, 'NX', redis.call('INCR', turns), endpoint)
  end
  nextRetry(endpoint)
end

-- How endpoints stand, asked for many at once.
local known = {}
local function learn(endpoints)
  local new = {}
  for _, endpoint in ipairs(endpoints) do
    if not known[endpoint] then new[#new + 1] = endpoint end
  end
  if #new == 0 then return end
  local underWay, since = redis.call('HMGET', flight, unpack(new)), redis.call('ZMSCORE', failing, unpack(new))
  for at, endpoint in ipairs(new) do
    local fails, before = since[at] ~= false, tonumber(underWay[at]) or 0
    known[endpoint] = { endpoint = endpoint, fails = fails, before = before, taken = 0,
      queue = tag .. ':dq:' .. endpoint, room = (fails and failingLimit or limit) - before }
  end
end

-- What is handed out, in order.
local given = {}
local function give(delivery, one)
  local kept = redis.call('HMGET', tag .. ':d:' .. delivery, 'i', 'g', 'n', 'a')
  if not kept[1] then
    gone = gone + 1
    return
  end
  given[#given + 1] = { delivery = delivery, lane = one, kept = kept }
  one.taken = one.taken + 1
  one.room = one.room - 1
  if one.fails then wantedFailing = wantedFailing - 1 end
end

-- Lanes with something to give, in turn, until they have enough together.
local lanes, held, offered, offeredFailing = {}, {}, 0, 0
while offered < wanted do
  local popped = redis.call('ZPOPMIN', firstRing, wanted - offered)
  if #popped == 0 then break end
  local endpoints = {}
  for at = 1, #popped, 2 do endpoints[#endpoints + 1] = popped[at] end
  learn(endpoints)
  for _, endpoint in ipairs(endpoints) do
    local one = known[endpoint]
    one.length = redis.call('LLEN', one.queue)
    local offer = math.min(one.room, one.length)
    if one.fails then offer = math.min(offer, wantedFailing - offeredFailing) end
    if offer > 0 then
      lanes[#lanes + 1], one.offer = one, offer
      offered = offered + offer
      if one.fails then offeredFailing = offeredFailing + offer end
    elseif one.room > 0 and one.length > 0 then
      held[#held + 1] = one
    end
  end
end

-- One for each in turn, as often as it takes.
local shares, left = {}, wanted
for at = 1, #lanes do shares[at] = 0 end
repeat
  local before = left
  for at, one in ipairs(lanes) do
    if left > 0 and shares[at] < one.offer then
      shares[at], left = shares[at] + 1, left - 1
    end
  end
until left == before
local own, deepest = {}, 0
for at, one in ipairs(lanes) do
  own[at] = shares[at] > 0 and redis.call('LPOP', one.queue, shares[at]) or {}
  deepest = math.max(deepest, shares[at])
end
for depth = 1, deepest do
  for at, one in ipairs(lanes) do
    if own[at][depth] then give(own[at][depth], one) end
  end
end

-- Endpoints that only the budget for failing ones holds back keep standing in the ring, behind the others.
local ring, more = {}, false
for at, one in ipairs(lanes) do
  if one.room > 0 and one.length > shares[at] then ring[#ring + 1] = one.endpoint end
end
if #ring > 0 or redis.call('EXISTS', firstRing) == 1 then more = true end
for _, one in ipairs(held) do ring[#ring + 1] = one.endpoint end

if not more and ARGV[8] == '1' then
  held = {}
  while #given < wanted do
    local due = redis.call('ZRANGEBYSCORE', retryRing, '-inf', now, 'LIMIT', 0, wanted - #given)
    if #due == 0 then break end
    learn(due)
    for _, endpoint in ipairs(due) do
      if #given >= wanted then break end
      local one, retries = known[endpoint], tag .. ':dr:' .. endpoint
      if one.room <= 0 or (one.fails and wantedFailing <= 0) then
        redis.call('ZREM', retryRing, endpoint)
        if one.room > 0 then held[#held + 1] = endpoint end
      else
        local delivery = redis.call('ZRANGEBYSCORE', retries, '-inf', now, 'LIMIT', 0, 1)[1]
        if delivery then
          redis.call('ZREM', retries, delivery)
          give(delivery, one)
        end
        nextRetry(endpoint)
      end
    end
  end
  for _, endpoint in ipairs(held) do nextRetry(endpoint) end
end

local turn = 0
if #ring + #given > 0 then turn = redis.call('INCRBY', turns, #ring + #given) - #ring - #given end
local function nextTurn()
  turn = turn + 1
  return string.format('%.0f', turn)
end

local shipments, places, events, rows, leased = {}, {}, {}, {}, {}
local function shipmentPlace(id)
  if not places[id] then
    local kept = redis.call('HMGET', tag .. ':s:' .. id, 'c', 'st', 'v')
    for _, value in ipairs({ id, kept[1], kept[2], kept[3] }) do shipments[#shipments + 1] = value end
    places[id] = #shipments / 4
  end
  return places[id]
end

local row = 0
for at, one in ipairs(given) do
  local lease, kept = nextTurn(), one.kept
  leased[2 * at - 1] = clock + lasts
  leased[2 * at] = one.lane.endpoint .. ' ' .. one.delivery .. ' ' .. lease
  local frozen, event, shipment = kept[1], string.match(kept[1], '^%S+ (%S+) (%d+)')
  -- Words and fact are two lines as they are stored; the deliveries of an event share its fact.
  if events[event] then frozen = string.match(frozen, '^[^\n]*\n') end
  events[event] = true
  rows[row + 1], rows[row + 2], rows[row + 3], rows[row + 4] = one.delivery, lease, kept[2] or 1, kept[3] or 0
  rows[row + 5], rows[row + 6] = one.lane.fails and 1 or 0, shipmentPlace(shipment)
  rows[row + 7], rows[row + 8] = frozen, kept[4] or '[]'
  row = row + 8
end
if #leased > 0 then redis.call('ZADD', leases, unpack(leased)) end
local underWay, standing = {}, {}
for endpoint, one in pairs(known) do
  if one.taken > 0 then underWay[#underWay + 1], underWay[#underWay + 2] = endpoint, one.before + one.taken end
end
if #underWay > 0 then redis.call('HSET', flight, unpack(underWay)) end
for _, endpoint in ipairs(ring) do standing[#standing + 1], standing[#standing + 2] = nextTurn(), endpoint end
if #standing > 0 then redis.call('ZADD', firstRing, 'NX', unpack(standing)) end
if gone > 0 then redis.call('HINCRBY', ledger, 'webhook:failed', gone) end
return { more and '1' or '0', shipments, table.concat(rows, '\n') }
