-- Hands out due deliveries under a lease: first attempts of any endpoint before retries, in turn over the endpoints.
--
-- KEYS[1]  endpoints with first attempts (sorted set by turn)
-- KEYS[2]  endpoints with retries (sorted set by due time)
-- KEYS[3]  leases (sorted set by their end)    KEYS[4]  deliveries under way per endpoint (hash)
-- KEYS[5]  counter of turns and leases         KEYS[6]  failing endpoints (sorted set)
-- ARGV[1]  hash tag of the partition; further keys of the same tag are built from it
-- ARGV[2]  the service clock, milliseconds: what retries are due by
-- ARGV[3]  milliseconds a lease lasts, by the clock of Redis, so that a moved test clock ends no lease
-- ARGV[4]  deliveries wanted                   ARGV[5]  of them for failing endpoints
-- ARGV[6]  under way per endpoint              ARGV[7]  the same for a failing one
-- ARGV[8]  '1' when retries may be handed out: no partition had first attempts left a moment ago
--
-- A lease that has ended puts its delivery back where it was: what a killed process had under way is sent again.
-- An endpoint at its limit leaves the rings; finishing a delivery of its brings it back.
--
-- Reply: '1' when first attempts are left, else '0'; then for each delivery a list: delivery id, lease, delivery (JSON),
-- generation, attempts made in it, attempts (JSON), '1' when the endpoint is failing.
local firstRing, retryRing, leases, flight, turns, failing = unpack(KEYS)
local tag, now, lasts = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local wanted, wantedFailing = tonumber(ARGV[4]), tonumber(ARGV[5])
local limit, failingLimit = tonumber(ARGV[6]), tonumber(ARGV[7])
local ENDED_PER_CALL = 100

local anyFirst = redis.call('EXISTS', firstRing) == 1
local anyRetry = redis.call('EXISTS', retryRing) == 1
local anyLease = redis.call('EXISTS', leases) == 1
if not (anyFirst or anyRetry or anyLease) then return { '0' } end

local time = redis.call('TIME')
local clock = time[1] * 1000 + math.floor(time[2] / 1000)
local reply, given = { '0' }, 0

local function turn(endpoint)
  redis.call('ZADD', firstRing, 'NX', redis.call('INCR', turns), endpoint)
end

local function nextRetry(endpoint)
  local first = redis.call('ZRANGE', tag .. ':dr:' .. endpoint, 0, 0, 'WITHSCORES')
  if first[2] then redis.call('ZADD', retryRing, first[2], endpoint)
  else redis.call('ZREM', retryRing, endpoint) end
end

for _, member in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', clock, 'LIMIT', 0, ENDED_PER_CALL)) do
  local endpoint, delivery = string.match(member, '^(%S+) (%S+)$')
  redis.call('ZREM', leases, member)
  if redis.call('HINCRBY', flight, endpoint, -1) <= 0 then redis.call('HDEL', flight, endpoint) end
  local key = tag .. ':d:' .. delivery
  local state = redis.call('HMGET', key, 's', 'd')
  redis.call('HDEL', key, 'l')
  if state[1] == 'queued' then redis.call('LPUSH', tag .. ':dq:' .. endpoint, delivery)
  elseif state[1] == 'waiting' then redis.call('ZADD', tag .. ':dr:' .. endpoint, state[2] or now, delivery) end
  if redis.call('EXISTS', tag .. ':dq:' .. endpoint) == 1 then turn(endpoint) end
  nextRetry(endpoint)
end

local failingNow, underWay = {}, {}
local function mayTake(endpoint)
  if failingNow[endpoint] == nil then
    failingNow[endpoint] = redis.call('ZSCORE', failing, endpoint) ~= false
    underWay[endpoint] = tonumber(redis.call('HGET', flight, endpoint)) or 0
  end
  if failingNow[endpoint] and wantedFailing <= 0 then return false end
  return underWay[endpoint] < (failingNow[endpoint] and failingLimit or limit)
end

local function take(endpoint, delivery)
  local key = tag .. ':d:' .. delivery
  local kept = redis.call('HMGET', key, 'i', 'g', 'n', 'a')
  -- A delivery is gone 30 days after its creation, wherever it stands.
  if not kept[1] then return end
  local lease = redis.call('INCR', turns)
  redis.call('HSET', key, 'l', lease)
  redis.call('ZADD', leases, clock + lasts, endpoint .. ' ' .. delivery)
  underWay[endpoint] = redis.call('HINCRBY', flight, endpoint, 1)
  if failingNow[endpoint] then wantedFailing = wantedFailing - 1 end
  given = given + 1
  reply[#reply + 1] = { delivery, tostring(lease), kept[1], kept[2], kept[3], kept[4],
    failingNow[endpoint] and '1' or '0' }
end

-- Endpoints that only the budget for failing ones holds back: they keep their place.
local held = {}
while given < wanted do
  local popped = redis.call('ZPOPMIN', firstRing)
  local endpoint = popped[1]
  if not endpoint then break end
  local queue = tag .. ':dq:' .. endpoint
  if mayTake(endpoint) then
    local delivery = redis.call('LPOP', queue)
    if delivery then take(endpoint, delivery) end
    if redis.call('EXISTS', queue) == 1 then turn(endpoint) end
  elseif failingNow[endpoint] and wantedFailing <= 0 then
    held[#held + 1] = endpoint
  end
end
local left = redis.call('EXISTS', firstRing) == 1
for _, endpoint in ipairs(held) do turn(endpoint) end
if left then reply[1] = '1' end
if left or ARGV[8] ~= '1' then return reply end

held = {}
while given < wanted do
  local due = redis.call('ZRANGEBYSCORE', retryRing, '-inf', now, 'LIMIT', 0, wanted - given)
  if #due == 0 then break end
  for _, endpoint in ipairs(due) do
    if given >= wanted then break end
    local retries = tag .. ':dr:' .. endpoint
    local delivery = redis.call('ZRANGEBYSCORE', retries, '-inf', now, 'LIMIT', 0, 1)[1]
    if not mayTake(endpoint) then
      redis.call('ZREM', retryRing, endpoint)
      if failingNow[endpoint] and wantedFailing <= 0 then held[#held + 1] = endpoint end
    elseif delivery then
      redis.call('ZREM', retries, delivery)
      take(endpoint, delivery)
      nextRetry(endpoint)
    else
      nextRetry(endpoint)
    end
  end
end
for _, endpoint in ipairs(held) do nextRetry(endpoint) end
return reply
