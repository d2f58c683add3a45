#!lua flags=no-writes
-- Finds orders of a channel by their natural keys.
--
-- KEYS[1]  hash: natural key -> order id
-- ARGV[1]  hash tag of the partition; the orders' own keys are built from it
-- then the natural keys
--
-- Reply: for each natural key {id, version, record (JSON)}, or an empty list where there is no order.
local reply = {}
for at = 2, #ARGV do
  local id = redis.call('HGET', KEYS[1], ARGV[at])
  if id then
    local fields = redis.call('HMGET', ARGV[1] .. ':o:' .. id, 'v', 'd')
    reply[#reply + 1] = { id, fields[1], fields[2] }
  else
    reply[#reply + 1] = {}
  end
end
return reply
