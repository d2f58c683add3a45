#!lua
-- Fails what waits in the lanes of endpoints that are switched off. What is under way ends by itself.
--
-- KEYS[1]  endpoints with first attempts (sorted set)    KEYS[2]  endpoints with retries (sorted set)
-- KEYS[3]  ledger (hash): `webhook:failed` grows
-- ARGV[1]  hash tag of the partition; further keys of the same tag are built from it
-- ARGV[2]  deliveries one call fails at most
-- ARGV[3]  reason
-- ARGV[4…] endpoint ids
--
-- Reply: how many deliveries have failed; when it equals ARGV[2] more may be left.
local firstRing, retryRing, ledger = KEYS[1], KEYS[2], KEYS[3]
local tag, limit, reason = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local failed = 0

local function fail(endpoint, delivery)
  local key, log = tag .. ':d:' .. delivery, tag .. ':dl:' .. endpoint
  if redis.call('EXISTS', key) == 1 then
    redis.call('HSET', key, 's', 'failed', 'd', '', 'r', reason)
    local created = redis.call('ZSCORE', log, delivery)
    if created then redis.call('ZADD', tag .. ':df:' .. endpoint, created, delivery) end
  end
  -- A delivery that is gone, 30 days after its creation, has failed as well.
  failed = failed + 1
end

for at = 4, #ARGV do
  local endpoint = ARGV[at]
  local queue, retries = tag .. ':dq:' .. endpoint, tag .. ':dr:' .. endpoint
  while failed < limit do
    local delivery = redis.call('LPOP', queue) or redis.call('ZPOPMIN', retries)[1]
    if not delivery then break end
    fail(endpoint, delivery)
  end
  redis.call('PEXPIRE', tag .. ':df:' .. endpoint, redis.call('PTTL', tag .. ':dl:' .. endpoint))
  if redis.call('EXISTS', queue) == 0 then redis.call('ZREM', firstRing, endpoint) end
  if redis.call('EXISTS', retries) == 0 then redis.call('ZREM', retryRing, endpoint) end
end
if failed > 0 then redis.call('HINCRBY', ledger, 'webhook:failed', failed) end
return failed
