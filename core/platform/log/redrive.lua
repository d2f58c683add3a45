#!lua
-- Redrives a dead letter: moves it from the dead letters to the retries of its own group. Repeating it changes nothing.
--
-- KEYS[1]  dead letters of a log (stream)
-- KEYS[2]  its redriven dead letters (sorted set by time)
-- KEYS[3]  retries of the letter's group, by due time (sorted set)
-- KEYS[4]  the same by the time of its entry (sorted set)
-- ARGV[1]  stream id of the letter    ARGV[2]  its group
-- ARGV[3]  the service clock, milliseconds    ARGV[4]  what was driven again before this is forgotten
--
-- Reply: 1 = redriven, now or before, 0 = there is no such letter of the group.
local dead, redriven, id, now, before = KEYS[1], KEYS[2], ARGV[1], ARGV[3] + 0, ARGV[4] + 0
local letter = redis.call('XRANGE', dead, id, id)[1]
if not letter then return redis.call('ZSCORE', redriven, id) and 1 or 0 end
local fields = {}
for at = 1, #letter[2], 2 do fields[letter[2][at]] = letter[2][at + 1] end
local entered = string.match(fields.id or '', '^%d+')
if fields.group ~= ARGV[2] or not entered then return 0 end
-- The letter's own id keeps two letters of one entry apart.
local text = cjson.encode({ letter = id, id = fields.id, entry = fields.entry })
redis.call('ZADD', KEYS[3], 0, text)
redis.call('ZADD', KEYS[4], entered, text)
redis.call('XDEL', dead, id)
redis.call('ZADD', redriven, now, id)
redis.call('ZREMRANGEBYSCORE', redriven, '-inf', before)
return 1
