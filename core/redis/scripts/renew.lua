#!lua flags=allow-oom
-- Lengthens the leases of deliveries that are still under way. Runs with a full memory too: it changes scores and adds nothing.
--
-- KEYS[1]  leases: `endpoint delivery lease` (sorted set by their end)
-- ARGV[1]  milliseconds a lease lasts from now, by the clock of Redis
-- ARGV[2…] leases, 1,000 at most
--
-- Reply: how many were lengthened; a lease that has ended stays ended.
local time = redis.call('TIME')
local ends = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1])
local members = {}
for at = 2, #ARGV do
  members[#members + 1] = ends
  members[#members + 1] = ARGV[at]
end
return redis.call('ZADD', KEYS[1], 'XX', 'CH', unpack(members))
