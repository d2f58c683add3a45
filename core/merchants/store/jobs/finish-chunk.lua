#!lua flags=allow-oom
-- Records the result of one chunk of an import job; the first result counts. Runs with full memory too: its shipments exist
-- already, no more are created then, and the chunk's items are deleted.
--
-- KEYS[1]  job (hash)    KEYS[2]  items (hash: chunk -> JSON)    KEYS[3]  results (hash: chunk -> JSON)
-- ARGV[1]  chunk    ARGV[2]  result (JSON)    ARGV[3]  items of the chunk    ARGV[4]  rejected ones among them
-- ARGV[5]  seconds the results are kept
--
-- Reply: 1 = recorded, 0 = it was recorded before.
for at = 3, 5 do assert(string.match(ARGV[at] or '', '^%d+$'), 'a number') end
if redis.call('HSETNX', KEYS[3], ARGV[1], ARGV[2]) == 0 then return 0 end
redis.call('EXPIRE', KEYS[3], ARGV[5])
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('HINCRBY', KEYS[1], 'processed', ARGV[3])
redis.call('HINCRBY', KEYS[1], 'failed', ARGV[4])
return 1
