#!lua flags=no-writes
-- Reads what the archive holds of a company, at one point in time.
--
-- KEYS[1]  the summary (hash)    KEYS[2]  rows that do not count    KEYS[3]  batches that do not count (sorted sets)
--
-- Reply: alternating fields and values of the summary; the rows; the batches.
local call = redis.call
return { call('HGETALL', KEYS[1]), call('ZRANGE', KEYS[2], 0, -1), call('ZRANGE', KEYS[3], 0, -1) }
