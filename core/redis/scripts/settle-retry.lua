-- Settles a try, once: what was tried is done, waits for its next try, or stands among the dead letters.
--
-- KEYS[1]  what waits for its next try in the group (sorted set by the time of the entry, milliseconds)
-- KEYS[2]  dead letters of the log (stream)
-- ARGV[1]  its text
-- ARGV[2]  its text for the next try, '' when there is none
-- ARGV[3]  key of the log    ARGV[4]  group    ARGV[5]  why it failed for the last time, '' when it has not
--
-- Reply: 1 = settled, 0 = another process has settled it before.
local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not score then return 0 end
redis.call('ZREM', KEYS[1], ARGV[1])
if ARGV[2] ~= '' then redis.call('ZADD', KEYS[1], score, ARGV[2]) end
if ARGV[5] ~= '' then
  local kept = cjson.decode(ARGV[1])
  redis.call('XADD', KEYS[2], '*', 'log', ARGV[3], 'group', ARGV[4], 'id', kept.id,
    'reason', ARGV[5], 'entry', kept.entry)
end
return 1
