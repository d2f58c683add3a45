#!lua
-- Notes that processors are running, and any time before in which none were: from the last heartbeat of one of them to this one.
--
-- KEYS[1]  who is running (sorted set by last heartbeat, clock of Redis, milliseconds)
-- KEYS[2]  clock (hash): `at`, the service clock at the last heartbeat; `noted`, how many downtimes were noted so far
-- KEYS[3]  downtimes (list, oldest first): `from to`, service clock, milliseconds
-- ARGV[1]  who is running    ARGV[2]  the service clock, milliseconds
-- ARGV[3]  milliseconds without a heartbeat after which somebody counts as gone
-- ARGV[4]  downtimes kept: one more, and the two oldest become one with the time between them
-- ARGV[5]  'runs', or 'ends' with the last heartbeat
--
-- Who is gone is told by the clock of Redis: the service clock of a test may be moved while everybody is running. With full memory
-- it is refused, like the leases of deliveries: nothing is delivered then.
--
-- Reply: how many downtimes were noted so far.
local running, clock, downtimes, call = KEYS[1], KEYS[2], KEYS[3], redis.call
local name, now, goneMs, most, verb = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
assert(#KEYS == 3 and name and now and goneMs and most and most >= 1, 'malformed arguments')
assert(verb == 'runs' or verb == 'ends', 'an unknown verb')
local time = call('TIME')
local realMs = time[1] * 1000 + math.floor(time[2] / 1000)

local others = call('ZCOUNT', running, realMs - goneMs, realMs + goneMs)
local known = call('HMGET', clock, 'at', 'noted')
local at, noted = tonumber(known[1]), tonumber(known[2]) or 0
if others == 0 and at and now > at then
  noted = noted + 1
  call('RPUSH', downtimes, string.format('%.0f %.0f', at, now))
  if call('LLEN', downtimes) > most then
    local oldest = call('LPOP', downtimes, 2)
    call('LPUSH', downtimes, string.match(oldest[1], '^%d+') .. ' ' .. string.match(oldest[2], '%d+$'))
  end
end
call('HSET', clock, 'at', string.format('%.0f', now), 'noted', noted)
if verb == 'ends' then
  call('ZREM', running, name)
else
  call('ZADD', running, realMs, name)
  call('ZREMRANGEBYSCORE', running, '-inf', realMs - goneMs)
end
return noted
