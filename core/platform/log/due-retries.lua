#!lua flags=no-writes
-- What is due for its next try, by the clock of Redis, so that the clocks of processes do not matter.
--
-- KEYS[1]  what waits for its next try in a group (sorted set by when it is due, milliseconds)
-- ARGV[1]  how many at most
--
-- Reply: their texts.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
