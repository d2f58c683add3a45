#!lua flags=no-writes
-- Finds the work of a partition: the endpoints that the next call of `lease.lua` will name, and the expired leases.
--
-- KEYS[1]  endpoints with first attempts (sorted set by turn)
-- KEYS[2]  endpoints with retries (sorted set by due time)
-- KEYS[3]  leases: `endpoint delivery lease` (sorted set by their end)
-- ARGV[1]  the service clock, milliseconds: what retries are due by
-- ARGV[2]  endpoints of each ring, at most     ARGV[3]  failing endpoints of each ring, at most
-- ARGV[4]  where the scores of failing endpoints begin in the rings
-- ARGV[5]  '1' when retries are included        ARGV[6]  expired leases, at most
--
-- Reply: endpoints with first attempts in turn, failing ones last; endpoints with due retries, failing ones last; expired leases.
local firstRing, retryRing, leases = KEYS[1], KEYS[2], KEYS[3]
local now, most, mostFailing = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local failingFrom, mostEnded = tonumber(ARGV[4]), tonumber(ARGV[6])
assert(now and most and mostFailing and failingFrom and mostEnded, 'malformed arguments')

local function standing(ring, last)
  local found = redis.call('ZRANGEBYSCORE', ring, '-inf', last or '(' .. ARGV[4], 'LIMIT', 0, most)
  if mostFailing <= 0 then return found end
  local upTo = last and failingFrom + last or '+inf'
  for _, endpoint in ipairs(redis.call('ZRANGEBYSCORE', ring, failingFrom, upTo, 'LIMIT', 0, mostFailing)) do
    found[#found + 1] = endpoint
  end
  return found
end

local time = redis.call('TIME')
local clock = time[1] * 1000 + math.floor(time[2] / 1000)
return {
  standing(firstRing),
  ARGV[5] == '1' and standing(retryRing, now) or {},
  redis.call('ZRANGEBYSCORE', leases, '-inf', clock, 'LIMIT', 0, mostEnded),
}
