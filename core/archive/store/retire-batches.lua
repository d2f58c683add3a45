#!lua
-- Ends the life of the oldest batches of a company's archive: from then on none of their rows counts.
--
-- KEYS[1]  what the archive holds of the company (hash, as in remove.lua): `floor` = the first batch that counts, `floored` = when it
--          was raised last (Redis clock, milliseconds), `retiring` = the batch that it is being raised to, `forgotten` = when
--          their references were removed, `forgotten-rows` = of how many rows they were so far, `removed` = how many shipments this has removed so far
-- KEYS[2]  reports of such removals (list of JSON, newest first)
-- ARGV[1]  the floor as it was read    ARGV[2]  the new one    ARGV[3]  `seq` as it was read    ARGV[4]  report
-- ARGV[5]  reports that are kept
-- then for each channel and status three: channel, status (its number), how many shipments leave
--
-- Reply: 1 = done, 0 = something has moved to the archive or back meanwhile: count again.
local call, summary, removed = redis.call, KEYS[1], 0
assert(ARGV[1] + 0 < ARGV[2] + 0 and ARGV[3] + 0 >= 0 and #ARGV[4] > 0 and ARGV[5] + 0 >= 1 and #ARGV % 3 == 2, 'a number')
for at = 6, #ARGV, 3 do
  assert(#ARGV[at] > 0 and ARGV[at + 1] + 0 >= 0 and ARGV[at + 2] + 0 >= 1, 'a count')
  removed = removed + ARGV[at + 2]
end
local known = call('HMGET', summary, 'floor', 'seq', 'retiring')
if (known[1] or '0') ~= ARGV[1] or (known[2] or '0') ~= ARGV[3] or known[3] ~= ARGV[2] then return 0 end

local time = call('TIME')
for at = 6, #ARGV, 3 do
  call('HINCRBY', summary, 'n:' .. ARGV[at] .. ':' .. ARGV[at + 1], string.format('%d', -ARGV[at + 2]))
end
call('HSET', summary, 'floor', ARGV[2], 'floored', time[1] .. string.format('%03d', math.floor(time[2] / 1000)))
call('HDEL', summary, 'retiring', 'forgotten', 'forgotten-rows')
call('HINCRBY', summary, 'removed', string.format('%d', removed))
call('HINCRBY', summary, 'seq', 1)
call('LPUSH', KEYS[2], ARGV[4])
call('LTRIM', KEYS[2], 0, ARGV[5] - 1)
return 1
