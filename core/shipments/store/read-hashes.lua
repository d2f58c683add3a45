#!lua flags=no-writes
-- Reads many hashes whole.
--
-- KEYS[i]  hash
--
-- Reply: for each key its fields and values in turn, an empty list where there is no such hash.
local reply = {}
for at = 1, #KEYS do
  reply[at] = redis.call('HGETALL', KEYS[at])
end
return reply
