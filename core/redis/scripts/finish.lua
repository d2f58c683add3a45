-- Records what came of leased deliveries and of the health of their endpoints.
--
-- KEYS[1]  endpoints with first attempts (sorted set by turn)
-- KEYS[2]  endpoints with retries (sorted set by due time)
-- KEYS[3]  leases (sorted set by their end)    KEYS[4]  deliveries under way per endpoint (hash)
-- KEYS[5]  counter of turns                    KEYS[6]  failing endpoints (sorted set)
-- KEYS[7]  endpoints warned (set)              KEYS[8]  ledger (hash): `webhook:delivered`, `webhook:failed`
-- ARGV[1]  hash tag of the partition; further keys of the same tag are built from it
-- ARGV[2]  the service clock, milliseconds
-- ARGV[3]  hour of the statistics    ARGV[4]  seconds they live
-- then, for each delivery, ten: delivery id, endpoint id, lease, new state (delivered, waiting, failed), attempts made in
--   this generation, attempts (JSON), due time (milliseconds, '' when none), reason ('' when none),
--   health ('success', 'failure', or 'none' when nothing was sent), latency bucket ('' when nothing was sent)
--
-- Reply: for each delivery 1 = recorded, 0 = the lease has ended and another one holds (nothing done).
local firstRing, retryRing, leases, flight, turns, failing, warned, ledger = unpack(KEYS)
local tag, now = ARGV[1], ARGV[2]
local reply, counts, attempts = {}, {}, {}

local function countAttempt(endpoint, field)
  attempts[endpoint] = attempts[endpoint] or {}
  attempts[endpoint][field] = (attempts[endpoint][field] or 0) + 1
end

-- What has failed stands in its endpoint's set of failed deliveries, by creation as in the log.
local function keepFailed(endpoint, delivery)
  local log, failed = tag .. ':dl:' .. endpoint, tag .. ':df:' .. endpoint
  local created = redis.call('ZSCORE', log, delivery)
  if not created then return end
  redis.call('ZADD', failed, created, delivery)
  redis.call('PEXPIRE', failed, redis.call('PTTL', log))
end

for at = 5, #ARGV, 10 do
  local delivery, endpoint, lease, state = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local made, kept, due, reason = ARGV[at + 4], ARGV[at + 5], ARGV[at + 6], ARGV[at + 7]
  local health, bucket = ARGV[at + 8], ARGV[at + 9]
  local key = tag .. ':d:' .. delivery
  local queue, retries = tag .. ':dq:' .. endpoint, tag .. ':dr:' .. endpoint
  if redis.call('HGET', key, 'l') ~= lease then
    reply[#reply + 1] = 0
  else
    redis.call('HDEL', key, 'l')
    redis.call('HSET', key, 's', state, 'n', made, 'a', kept, 'd', due, 'r', reason)
    if state == 'waiting' then redis.call('ZADD', retries, due, delivery)
    else counts[state] = (counts[state] or 0) + 1 end
    if state == 'failed' then keepFailed(endpoint, delivery) end
    if bucket ~= '' then
      countAttempt(endpoint, health)
      countAttempt(endpoint, bucket)
    end
    if health == 'success' then
      redis.call('ZREM', failing, endpoint)
      redis.call('SREM', warned, endpoint)
    elseif health == 'failure' then
      redis.call('ZADD', failing, 'NX', now, endpoint)
    end
    reply[#reply + 1] = 1
  end
  -- The place under way is given back by whoever still stands in the leases: this one, or a delivery that is gone.
  if reply[#reply] == 1 or redis.call('EXISTS', key) == 0 then
    if redis.call('ZREM', leases, endpoint .. ' ' .. delivery) == 1
      and redis.call('HINCRBY', flight, endpoint, -1) <= 0 then
      redis.call('HDEL', flight, endpoint)
    end
  end
  if redis.call('EXISTS', queue) == 1 then
    redis.call('ZADD', firstRing, 'NX', redis.call('INCR', turns), endpoint)
  end
  local first = redis.call('ZRANGE', retries, 0, 0, 'WITHSCORES')
  if first[2] then redis.call('ZADD', retryRing, first[2], endpoint) end
end
for endpoint, fields in pairs(attempts) do
  local hour = tag .. ':dh:' .. endpoint .. ':' .. ARGV[3]
  for field, n in pairs(fields) do redis.call('HINCRBY', hour, field, n) end
  redis.call('EXPIRE', hour, ARGV[4])
end
for state, n in pairs(counts) do redis.call('HINCRBY', ledger, 'webhook:' .. state, n) end
return reply
