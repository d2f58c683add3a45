#!lua
-- Drives a dead letter again: from the dead letters to what its own group tries next. Repeating it changes nothing.
--
-- KEYS[1]  dead letters of a log (stream)
-- KEYS[2]  dead letters of it that were driven again (sorted set by time)
-- ARGV[1]  stream id of the letter
-- ARGV[2]  start of the key of what a group tries next, by when it is due, of the same tag; the group follows
-- ARGV[3]  the service clock, milliseconds    ARGV[4]  what was driven again before this is forgotten
-- ARGV[5]  start of the key of the same by the time of its entry; the group follows
--
-- Reply: 1 = driven again, now or before, 0 = there is no such letter.
local dead, redriven, id = KEYS[1], KEYS[2], ARGV[1]
local letter = redis.call('XRANGE', dead, id, id)[1]
if not letter then return redis.call('ZSCORE', redriven, id) and 1 or 0 end
local fields = {}
for at = 1, #letter[2], 2 do fields[letter[2][at]] = letter[2][at + 1] end
-- The letter's own id keeps two letters of one entry apart.
local text = cjson.encode({ letter = id, id = fields.id, entry = fields.entry })
redis.call('ZADD', ARGV[2] .. fields.group, 0, text)
redis.call('ZADD', ARGV[5] .. fields.group, string.match(fields.id, '^%d+'), text)
redis.call('XDEL', dead, id)
redis.call('ZREMRANGEBYSCORE', redriven, '-inf', ARGV[4])
redis.call('ZADD', redriven, ARGV[3], id)
return 1
