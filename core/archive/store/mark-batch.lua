#!lua
-- Marks a batch of the archive as one that does not count, in place of its rows.
--
-- KEYS[1]  rows that do not count (sorted set of `id batch`)    KEYS[2]  batches that do not count (sorted set)
-- ARGV[1]  the batch    ARGV[2…] its rows
--
-- Reply: how many marks were dropped; 0 = a row is not marked, and nothing is done.
local call = redis.call
assert(ARGV[1] + 0 >= 1 and #ARGV >= 2, 'a batch')
for at = 2, #ARGV do
  if not call('ZSCORE', KEYS[1], ARGV[at]) then return 0 end
end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
call('ZADD', KEYS[2], now, ARGV[1])
return call('ZREM', KEYS[1], unpack(ARGV, 2))
