#!lua
-- Allocates numbers for batches of the archive. A settled one is never allocated again, even where a failover has lost the last
-- allocation.
--
-- KEYS[1]  what the archive holds of the company (hash, as in remove.lua); `next` is the last number that was allocated
-- ARGV[1]  how many
--
-- Reply: the first of them.
local call, count = redis.call, ARGV[1] + 0
assert(count >= 1, 'a number')
local known = call('HMGET', KEYS[1], 'next', 'batch')
local last = math.max(tonumber(known[1] or 0), tonumber(known[2] or 0))
call('HSET', KEYS[1], 'next', string.format('%d', last + count))
return last + 1
