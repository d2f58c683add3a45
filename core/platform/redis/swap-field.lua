#!lua
-- Replaces a hash field if it is still what was read.
--
-- KEYS[1]  hash
-- ARGV[1]  field    ARGV[2]  value that was read    ARGV[3]  new value
--
-- Reply: 1 = replaced, 0 = somebody else was faster.
assert(#ARGV == 3, 'a field and two values')
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
