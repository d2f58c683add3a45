#!lua flags=no-writes
-- Reads the same fields of many hashes.
--
-- KEYS[i]  hash
-- ARGV[j]  field
--
-- Reply: for each key the list of its values, null where a field is missing.
local reply = {}
for at = 1, #KEYS do
  reply[at] = redis.call('HMGET', KEYS[at], unpack(ARGV))
end
return reply
