#!lua flags=allow-oom
-- Discards a dead letter for good, also with full memory. Repeating it changes nothing.
--
-- KEYS[1]  dead letters of a log (stream)    KEYS[2]  ledger of the log's partition (hash)
-- ARGV[1]  stream id of the letter    ARGV[2]  field of the ledger that counts it, empty = none does
--
-- Reply: 1 = discarded, 0 = there is no such letter.
local id, field = ARGV[1], assert(ARGV[2], 'no field')
local count = field ~= '' and redis.call('HGET', KEYS[2], field) or '0'
assert(tonumber(count), 'the field of the ledger holds no number')
if #redis.call('XRANGE', KEYS[1], id, id) == 0 then return 0 end
redis.call('XDEL', KEYS[1], id)
if field ~= '' then redis.call('HINCRBY', KEYS[2], field, 1) end
return 1
