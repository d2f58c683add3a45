#!lua flags=no-writes
-- Finds the work of a partition: the endpoints that the next call of `lease.lua` will name, the expired leases, and the
-- endpoints whose pause is over.
--
-- KEYS[1]  endpoints with first attempts (sorted set by turn)
-- KEYS[2]  endpoints with retries (sorted set by due time)
-- KEYS[3]  leases: `endpoint delivery lease` (sorted set by their end)
-- KEYS[4]  paused endpoints (sorted set by the end of their pause)
-- ARGV[1]  the service clock, milliseconds: what retries are due by
-- ARGV[2]  endpoints of each ring, at most     ARGV[3]  failing endpoints of each ring, at most
-- ARGV[4]  where the scores of failing endpoints begin in the rings
-- ARGV[5]  '1' when retries are included        ARGV[6]  expired leases, and pauses that are over, at most
--
-- Reply: endpoints with first attempts in turn, failing ones last; endpoints with due retries, failing ones last; expired leases;
-- endpoints whose pause is over; when the next pause ends, '' when there is none.
local firstRing, retryRing, leases, pauses = unpack(KEYS)
local now, most, mostFailing = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local failingFrom, mostEnded = tonumber(ARGV[4]), tonumber(ARGV[6])
assert(now and most and mostFailing and failingFrom and mostEnded, 'malformed arguments')

local function standing(ring, last)
  local found = redis.call('ZRANGEBYSCORE', ring, '-inf', last or '(' .. ARGV[4], 'LIMIT', 0, most)
  if mostFailing == 0 then return found end
  local upTo = last and failingFrom + last or '+inf'
  for _, endpoint in ipairs(redis.call('ZRANGEBYSCORE', ring, failingFrom, upTo, 'LIMIT', 0, mostFailing)) do
    found[#found + 1] = endpoint
  end
  return found
end

local time = redis.call('TIME')
local nextPause = redis.call('ZRANGE', pauses, 0, 0, 'WITHSCORES')
local clock = time[1] * 1000 + math.floor(time[2] / 1000)
return {
  standing(firstRing),
  ARGV[5] == '1' and standing(retryRing, now) or {},
  redis.call('ZRANGEBYSCORE', leases, '-inf', clock, 'LIMIT', 0, mostEnded),
  nextPause[2] and tonumber(nextPause[2]) <= now and redis.call('ZRANGEBYSCORE', pauses, '-inf', now, 'LIMIT', 0, mostEnded) or {},
  nextPause[2] or '',
}
