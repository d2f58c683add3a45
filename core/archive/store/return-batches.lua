#!lua
-- Gives back numbers for batches of the archive that nothing was inserted under, so that they do not have to be remembered as skipped.
--
-- KEYS[1]  what the archive holds of the company (hash, as in remove.lua); `next` is the last number that was allocated
-- ARGV[1]  the first of them    ARGV[2]  the last
--
-- Reply: 1 = they are allocated again, 0 = others have been allocated since, or it was done before.
local call, first, last = redis.call, ARGV[1] + 0, ARGV[2] + 0
assert(first >= 1 and last >= first, 'a number')
if tonumber(call('HGET', KEYS[1], 'next') or 0) ~= last then return 0 end
call('HSET', KEYS[1], 'next', string.format('%d', first - 1))
return 1
