#!lua flags=allow-oom
-- Extends the leases of deliveries that are still in progress. Runs with full memory too: it changes scores and adds nothing.
--
-- KEYS[1]  leases: `endpoint delivery lease` (sorted set by their end)
-- ARGV[1]  milliseconds a lease lasts from now, by the clock of Redis
-- then the leases, 1,000 at most
--
-- Reply: how many were lengthened; a lease that has ended stays ended.
local lasts, count, MOST = tonumber(ARGV[1]), #ARGV - 1, 1000
assert(lasts and count <= MOST, 'malformed arguments')
if count < 1 then return 0 end
local time = redis.call('TIME')
local ends = time[1] * 1000 + math.floor(time[2] / 1000) + lasts
local members = {}
for at = 1, count do members[2 * at - 1], members[2 * at] = ends, ARGV[at + 1] end
return redis.call('ZADD', KEYS[1], 'XX', 'CH', unpack(members))
