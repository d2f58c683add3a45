#!lua
-- Queues deliveries that have ended as new: the next generation, attempts from 1. Alone, or as a step of a window's replay, which
-- takes failed ones only.
--
-- KEYS[1]  endpoints with first attempts (sorted set)    KEYS[2]  counter of turns
-- KEYS[3]  failing endpoints (sorted set)                KEYS[4]  ledger (hash): `webhook:<state before>` shrinks
-- KEYS[5]  replay of a window (hash), KEYS[6] replays that are not done (set), KEYS[7] shipments it has served (set);
--          all three absent when single deliveries are replayed
-- then, for each delivery, five: the delivery (hash); first attempts (list), failed deliveries and late replays (sorted sets) of its
--   endpoint; decisions of its shipment (hash)
-- ARGV[1]  minimum life of a replayed delivery, milliseconds: all of its attempts
-- ARGV[2]  where the scores of failing endpoints begin in the ring
-- ARGV[3]  the service clock, milliseconds    ARGV[4]  milliseconds a delivery is in the log after its creation
-- ARGV[5]  where the replay stands    ARGV[6]  where it stands after this step    (both '' without a replay)
-- ARGV[7]  the replay's id when this step is its last one, else ''
-- then, for each delivery, 500 at most, three: its id, its endpoint, its shipment if only one delivery of it is sent, else ''
--
-- A delivery that would leave the log before the end of its minimum life stays in it until then, as a late replay.
-- A replay that stands elsewhere was stepped by another process meanwhile, and one may have been stopped: nothing is done. What was
-- passed over since its shipment had been served is counted apart.
--
-- Reply: for each delivery 1 = queued, 0 = not ended (not failed), gone, or its shipment served; empty when nothing was done.
local FIXED_ARGUMENTS, OWN_KEYS, MOST, call = 7, 5, 500, redis.call
local ring, turns, failing, ledger = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local life, failingFrom, now, window = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local isWindow = ARGV[5] ~= ''
local replay, replays, served = KEYS[5], KEYS[6], KEYS[7]
local fixedKeys, count = isWindow and 7 or 4, (#ARGV - FIXED_ARGUMENTS) / 3
assert(life and failingFrom and now and window and count % 1 == 0 and count <= MOST, 'malformed arguments')
assert(#KEYS == fixedKeys + OWN_KEYS * count, 'five keys belong to each delivery')
if isWindow then
  local stands = call('HMGET', replay, 'at', 'state')
  if stands[1] ~= ARGV[5] or stands[2] ~= 'running' then return {} end
end

local stored = {}
for index = 1, count do
  local kept = call('HMGET', KEYS[fixedKeys + OWN_KEYS * (index - 1) + 1], 's', 'i', 'g')
  local endpoint, shipment = ARGV[FIXED_ARGUMENTS + 3 * index - 1], ARGV[FIXED_ARGUMENTS + 3 * index]
  assert(not kept[2] or string.match(kept[2], '^%S+') == endpoint, 'the delivery belongs to another endpoint')
  assert(shipment == '' or isWindow, 'only a replay serves a shipment once')
  kept.created = kept[2] and tonumber(string.match(kept[2], '^%S+ %S+ %S+ %S+ %S+ (%d+)'))
  assert(kept.created or not kept[2], 'a delivery has no time of creation')
  stored[index] = kept
end

-- Seen in the log until then, by the service clock, and kept at least as long by that of Redis.
local function keep(delivery, created, late, id, decisions)
  call('PEXPIRE', delivery, life, 'GT')
  call('PEXPIRE', decisions, life, 'GT')
  if created + window >= now + life then return end
  call('HSET', delivery, 'u', now + life)
  call('ZADD', late, created, id)
  call('ZREMRANGEBYSCORE', late, '-inf', now - window - life)
  call('PEXPIRE', late, life)
end

local reply, byEndpoint, queued, seen, before, older = {}, {}, 0, {}, {}, 0
for index, kept in ipairs(stored) do
  local id, endpoint, shipment = unpack(ARGV, FIXED_ARGUMENTS + 3 * index - 2, FIXED_ARGUMENTS + 3 * index)
  local key = fixedKeys + OWN_KEYS * (index - 1) + 1
  local delivery, own = KEYS[key], byEndpoint[endpoint] or { queue = KEYS[key + 1], failures = KEYS[key + 2], ids = {} }
  local state = kept[1]
  local isEnded = state == 'failed' or (state == 'delivered' and not isWindow)
  reply[index] = 0
  local isServed = shipment ~= '' and call('SADD', served, shipment) == 0
  if isServed then older = older + 1 end
  if not isServed and isEnded and not seen[id] then
    call('HSET', delivery, 's', 'queued', 'g', (tonumber(kept[3]) or 1) + 1, 'n', 0, 'd', '', 'r', '')
    keep(delivery, kept.created, KEYS[key + 3], id, KEYS[key + 4])
    byEndpoint[endpoint], seen[id], reply[index], queued = own, true, 1, queued + 1
    own.ids[#own.ids + 1] = id
    before[state] = (before[state] or 0) + 1
  end
end
for endpoint, own in pairs(byEndpoint) do
  call('RPUSH', own.queue, unpack(own.ids))
  if not call('ZSCORE', ring, endpoint) then
    local from = call('ZSCORE', failing, endpoint) and failingFrom or 0
    call('ZADD', ring, from + call('INCR', turns), endpoint)
  end
  call('ZREM', own.failures, unpack(own.ids))
end
for state, n in pairs(before) do call('HINCRBY', ledger, 'webhook:' .. state, -n) end
if isWindow then
  call('HSET', replay, 'at', ARGV[6])
  call('HINCRBY', replay, 'queued', queued)
  call('HINCRBY', replay, 'passedOver', #reply - queued)
  call('HINCRBY', replay, 'older', older)
  if ARGV[7] ~= '' then
    call('HSET', replay, 'state', 'done')
    call('SREM', replays, ARGV[7])
    call('DEL', served)
  elseif call('EXISTS', served) == 1 then
    call('PEXPIRE', served, call('PTTL', replay))
  end
end
return reply
