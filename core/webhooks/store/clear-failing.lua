#!lua
-- Clears the failing state of an endpoint and returns it to the healthy ones in the rings. Where it has succeeded, the last alert
-- about it is followed by one that it works again, once. Where it was switched, its pause ends and its concurrency begins again.
--
-- KEYS[1]  failing endpoints (sorted set by first failure)       KEYS[2]  endpoints warned (set)
-- KEYS[3]  endpoints with first attempts (sorted set by turn)    KEYS[4]  endpoints with retries (sorted set by due time)
-- KEYS[5]  last failures (hash by endpoint)
-- KEYS[6]  endpoints alerted since their last success (hash: the first failure)
-- KEYS[7]  alerts (stream)                                       KEYS[8]  paused endpoints (sorted set by the end of their pause)
-- KEYS[9]  concurrency of endpoints (hash)                       KEYS[10] rates of endpoints (hash)
-- ARGV[1]  endpoint    ARGV[2]  where the scores of failing endpoints begin in the rings
-- ARGV[3]  the service clock, milliseconds, when it has succeeded; '' when it was switched
--
-- Reply: 1 when it was failing, else 0.
local failing, warned, firstRing, retryRing, lastFailures, alerted, alerts, pauses, concurrencies, rates = unpack(KEYS)
local endpoint, failingFrom, now, call = ARGV[1], tonumber(ARGV[2]), ARGV[3], redis.call
assert(endpoint and failingFrom and (now == '' or tonumber(now)) and #KEYS == 10, 'malformed arguments')
local function joinHealthy(ring)
  local score = tonumber(call('ZSCORE', ring, endpoint) or 0)
  if score >= failingFrom then call('ZADD', ring, score - failingFrom, endpoint) end
end
joinHealthy(firstRing)
joinHealthy(retryRing)
call('SREM', warned, endpoint)
call('HDEL', lastFailures, endpoint)
if now == '' then
  -- The next look returns it to the rings.
  call('ZADD', pauses, 'XX', 0, endpoint)
  call('HDEL', concurrencies, endpoint)
  call('HDEL', rates, endpoint)
end
local since = now ~= '' and call('HGET', alerted, endpoint)
if since then
  call('XADD', alerts, '*', 'endpointId', endpoint, 'kind', 'recovered', 'sinceMs', since, 'atMs', now)
  call('HDEL', alerted, endpoint)
end
return call('ZREM', failing, endpoint)
