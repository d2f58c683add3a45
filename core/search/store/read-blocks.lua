#!lua flags=no-writes
-- Reads blocks of rows.
--
-- KEYS[i]  block
--
-- Reply: each block's rows, null where there is no such block.
local reply = {}
for at = 1, #KEYS do reply[at] = redis.call('GET', KEYS[at]) end
return reply
