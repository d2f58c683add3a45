#!lua flags=allow-oom
-- The live processes, with the id of the key each seals with. Runs with full memory too, or live ones would look dead.
--
-- KEYS[1]  the processes (sorted set: their texts by when they expire, milliseconds of Redis' clock)
-- ARGV[1]  'beat', 'leave' or 'list'    ARGV[2]  the process (beat, leave)    ARGV[3]  milliseconds a heartbeat counts
--
-- Reply: the live processes.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
if ARGV[1] == 'beat' then
  redis.call('ZADD', KEYS[1], now + tonumber(ARGV[3]), ARGV[2])
elseif ARGV[1] == 'leave' then
  redis.call('ZREM', KEYS[1], ARGV[2])
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
return redis.call('ZRANGE', KEYS[1], 0, -1)
