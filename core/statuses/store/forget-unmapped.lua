#!lua
-- Drops a shipment that is removed for good from the lists of those with unmapped events. A code that is in no other is dropped too.
--
-- KEYS[1]  unmapped codes (set of `courier:code`)
-- then for each code two: its counts (hash), its shipments (sorted set)
-- ARGV[1]  the shipment    ARGV[2…] the codes, as `courier:code`
--
-- Reply: how many lists it was in.
local call, dropped = redis.call, 0
assert(ARGV[1] + 0 >= 1 and #KEYS >= 3 and #KEYS == 1 + 2 * (#ARGV - 1), 'a key or an argument too few')
for at = 2, #ARGV do
  local counts, shipments = KEYS[2 * at - 2], KEYS[2 * at - 1]
  dropped = dropped + call('ZREM', shipments, ARGV[1])
  if call('EXISTS', shipments) == 0 then
    call('DEL', counts)
    call('SREM', KEYS[1], ARGV[at])
  end
end
return dropped
