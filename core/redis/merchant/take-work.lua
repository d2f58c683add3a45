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
-- Work is added to its new key before it leaves the old one: no key is touched after it was emptied, since Redis would
-- refuse that while the key's slot migrates.
--
-- Reply: for each piece its id and its lease.
local call, waiting, leases, holders, counter = redis.call, KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, lasts, wanted = ARGV[1], ARGV[2] + 0, ARGV[3]
assert(tonumber(now) and string.match(wanted, '^%d+$'), 'a time, or how many')
local time = call('TIME')
local clock = time[1] * 1000 + math.floor(time[2] / 1000)
local ended = call('ZRANGEBYSCORE', leases, '-inf', clock, 'LIMIT', 0, 100)
for _, id in ipairs(ended) do call('ZADD', waiting, 'NX', now, id) end
local due, isTaken, reply = call('ZRANGEBYSCORE', waiting, '-inf', now, 'LIMIT', 0, wanted), {}, {}
for _, id in ipairs(due) do
  local lease = tostring(call('INCR', counter))
  call('ZADD', leases, clock + lasts, id)
  call('HSET', holders, id, lease)
  isTaken[id], reply[#reply + 1], reply[#reply + 2] = true, id, lease
end
for _, id in ipairs(due) do call('ZREM', waiting, id) end
for _, id in ipairs(ended) do
  if not isTaken[id] then
    call('ZREM', leases, id)
    call('HDEL', holders, id)
  end
end
return reply
