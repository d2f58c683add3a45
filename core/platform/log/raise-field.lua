#!lua flags=allow-oom
-- Raises a number of a hash, and never lowers it. Runs with full memory too: it records how far a log has been consumed,
-- one number each.
--
-- KEYS[1]  hash
-- ARGV[1]  field    ARGV[2]  the number it has at least from now on
--
-- Reply: the number it has.
assert(tonumber(ARGV[2]), 'a number')
local known = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0)
if known >= tonumber(ARGV[2]) then return known end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return tonumber(ARGV[2])
