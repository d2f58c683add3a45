#!lua
-- Frees tracking numbers of archived shipments that are being removed for good.
--
-- KEYS     for each number two: the shipment (hash), the number (hash: courier -> id)
-- ARGV     for each number two: courier, id of the shipment
--
-- The number of a shipment that has come back stays, and so does one that another shipment has taken.
--
-- Reply: how many were freed.
local call, freed = redis.call, 0
assert(#KEYS > 0 and #KEYS % 2 == 0 and #ARGV == #KEYS, 'a key or an argument too few')
for at = 1, #KEYS, 2 do
  if call('EXISTS', KEYS[at]) == 0 and call('HGET', KEYS[at + 1], ARGV[at]) == ARGV[at + 1] then
    freed = freed + call('HDEL', KEYS[at + 1], ARGV[at])
  end
end
return freed
