#!lua
-- Replaces a part of a channel's search lines, from which those of removed shipments were left out (search-lines.ts).
--
-- KEYS[1]  the part (string)
-- ARGV[1]  the lines as they were read    ARGV[2]  those that stay
--
-- A part that is emptied stays as an empty text: the parts behind it are found by their numbers.
--
-- Reply: 1, or 0 and nothing done when lines were added meanwhile.
local call, before, after = redis.call, ARGV[1], ARGV[2]
assert(KEYS[1] and before and after and #after <= #before, 'malformed arguments')
if call('GET', KEYS[1]) ~= before then return 0 end
call('SET', KEYS[1], after)
return 1
