#!lua
-- Clears the failing state of an endpoint and returns it to the healthy ones in the rings.
--
-- KEYS[1]  failing endpoints (sorted set by first failure)       KEYS[2]  endpoints warned (set)
-- KEYS[3]  endpoints with first attempts (sorted set by turn)    KEYS[4]  endpoints with retries (sorted set by due time)
-- ARGV[1]  endpoint    ARGV[2]  where the scores of failing endpoints begin in the rings
--
-- Reply: 1 when it was failing, else 0.
local failing, warned, firstRing, retryRing = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local endpoint, failingFrom = ARGV[1], tonumber(ARGV[2])
assert(endpoint and failingFrom and #KEYS == 4, 'malformed arguments')
local function joinHealthy(ring)
  local score = tonumber(redis.call('ZSCORE', ring, endpoint) or 0)
  if score >= failingFrom then redis.call('ZADD', ring, score - failingFrom, endpoint) end
end
joinHealthy(firstRing)
joinHealthy(retryRing)
redis.call('SREM', warned, endpoint)
return redis.call('ZREM', failing, endpoint)
