#!lua
-- Puts another text in the place of one that waits for its next try in a group. Whoever is trying the old one settles nothing.
--
-- KEYS[1]  what waits for its next try in the group (sorted set by when it is due)
-- KEYS[2]  the same by the time of its entry (sorted set)
-- ARGV[1]  its text    ARGV[2]  the new one
--
-- Reply: 1 = replaced, 0 = it has been settled.
assert(#ARGV == 2 and ARGV[2] ~= '' and ARGV[1] ~= ARGV[2], 'two texts')
local due, entered = redis.call('ZSCORE', KEYS[1], ARGV[1]), redis.call('ZSCORE', KEYS[2], ARGV[1])
if not due or not entered then return 0 end
redis.call('ZADD', KEYS[1], due, ARGV[2])
redis.call('ZADD', KEYS[2], entered, ARGV[2])
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
return 1
