#!lua flags=allow-oom
-- The processes that live, by the id of the key they seal with. Memory that is full must not make one look dead.
--
-- KEYS[1]  the processes (sorted set: their texts by when they expire, milliseconds of Redis' clock)
-- ARGV[1]  'beat', 'leave' or 'list'    ARGV[2]  the process (beat, leave)    ARGV[3]  milliseconds a sign of life counts
--
-- Reply: those that live.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
if ARGV[1] == 'beat' then
  redis.call('ZADD', KEYS[1], now + tonumber(ARGV[3]), ARGV[2])
elseif ARGV[1] == 'leave' then
  redis.call('ZREM', KEYS[1], ARGV[2])
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
return redis.call('ZRANGE', KEYS[1], 0, -1)
