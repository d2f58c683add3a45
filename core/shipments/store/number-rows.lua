#!lua
-- Makes the rank of each shipment's row its score in the index by id, so that shipments may leave the index. Done once for a
-- channel, in steps, from the first row on; repeating a step changes nothing.
--
-- KEYS[1]  the channel's index by id (sorted set)
-- KEYS[2]  what has left its rows (hash): `gone` is set once all have their ranks
-- ARGV[1]  rank of the first row of this step    ARGV[2]  rows of a step
--
-- Ranks are smaller than ids, so that the order stays the same at every step: shipments created meanwhile stand at the end.
--
-- Reply: 1 when all rows have their ranks, else 0.
local call, from, count = redis.call, ARGV[1] + 0, ARGV[2] + 0
assert(from >= 0 and count >= 1, 'a number')
if call('HEXISTS', KEYS[2], 'gone') == 1 then return 1 end
local members, scores = call('ZRANGE', KEYS[1], from, from + count - 1), {}
for at, member in ipairs(members) do scores[2 * at - 1], scores[2 * at] = from + at - 1, member end
if #members > 0 then call('ZADD', KEYS[1], 'XX', unpack(scores)) end
if #members == count then return 0 end
call('HSET', KEYS[2], 'gone', 0)
return 1
