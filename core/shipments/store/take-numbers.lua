#!lua
-- Takes further tracking numbers of shipments on their channels. Repeating it changes nothing.
--
-- KEYS     for each number: its shipments (hash: courier -> id)
-- ARGV     for each number two: courier, id of the shipment
--
-- A number that another shipment has stays with that one. One that was taken stays for good: until then its hash may hold nothing but
-- the number of an archived shipment, and expire with it (remove.lua).
--
-- Reply: how many were new.
local call, taken = redis.call, 0
assert(#KEYS > 0 and #ARGV == 2 * #KEYS, 'an argument too few')
for at = 1, #ARGV do assert(#ARGV[at] > 0, 'a courier and a shipment') end
for at = 1, #KEYS do
  local courier, id = ARGV[2 * at - 1], ARGV[2 * at]
  taken = taken + call('HSETNX', KEYS[at], courier, id)
  if call('HGET', KEYS[at], courier) == id then call('PERSIST', KEYS[at]) end
end
return taken
