#!lua
-- Hands out due work under a lease. A lease that has ended puts its work back.
--
-- KEYS[1]  waiting work (sorted set by due time, service clock, milliseconds)
-- KEYS[2]  leases (sorted set by their end, clock of Redis, milliseconds)
-- KEYS[3]  work -> lease (hash)    KEYS[4]  counter of leases
-- ARGV[1]  the service clock, milliseconds
-- ARGV[2]  milliseconds a lease lasts, by the clock of Redis, so that a moved test clock ends no lease
-- ARGV[3]  pieces of work wanted
--
-- Reply: for each piece its id and its lease.
local waiting, leases, holders, counter = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local time = redis.call('TIME')
local clock = time[1] * 1000 + math.floor(time[2] / 1000)
for _, id in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', clock, 'LIMIT', 0, 100)) do
  redis.call('ZREM', leases, id)
  redis.call('HDEL', holders, id)
  redis.call('ZADD', waiting, 'NX', ARGV[1], id)
end
local reply = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', waiting, '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])) do
  local lease = redis.call('INCR', counter)
  redis.call('ZREM', waiting, id)
  redis.call('ZADD', leases, clock + ARGV[2], id)
  redis.call('HSET', holders, id, lease)
  reply[#reply + 1] = id
  reply[#reply + 1] = tostring(lease)
end
return reply
