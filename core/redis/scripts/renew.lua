-- Lengthens the leases of deliveries that are still under way.
--
-- KEYS[1]  leases (sorted set by their end)
-- ARGV[1]  hash tag of the partition; further keys of the same tag are built from it
-- ARGV[2]  milliseconds a lease lasts from now, by the clock of Redis
-- then, for each delivery, three: its id, its endpoint's, its lease
--
-- Reply: how many were lengthened; a lease that has ended stays ended.
local time = redis.call('TIME')
local ends = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[2])
local renewed = 0
for at = 3, #ARGV, 3 do
  local delivery, endpoint, lease = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if redis.call('HGET', ARGV[1] .. ':d:' .. delivery, 'l') == lease then
    redis.call('ZADD', KEYS[1], 'XX', ends, endpoint .. ' ' .. delivery)
    renewed = renewed + 1
  end
end
return renewed
