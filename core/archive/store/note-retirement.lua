#!lua
-- Notes how far the removal of the oldest batches of a company has come. A process that was paused notes nothing about one that
-- another process has brought to its end meanwhile.
--
-- KEYS[1]  what the archive holds of the company (hash, as in retire-batches.lua)
-- ARGV[1]  the batch that the floor is being raised to    ARGV[2]  1 = the removal begins, 0 = it is under way
-- ARGV[3…] fields and values
--
-- Reply: 1 = noted, 0 = another removal is under way, or none is.
local call, summary, to = redis.call, KEYS[1], ARGV[1]
assert(to + 0 >= 1 and (ARGV[2] == '0' or ARGV[2] == '1') and #ARGV >= 4 and #ARGV % 2 == 0, 'a batch, fields and values')
local known = call('HMGET', summary, 'retiring', 'floor')
local isOwn = known[1] == to
if ARGV[2] == '1' and not known[1] then isOwn = to + 0 > tonumber(known[2] or 0) end
if not isOwn then return 0 end
call('HSET', summary, unpack(ARGV, 3))
return 1
