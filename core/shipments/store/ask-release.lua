#!lua
-- Asks for what was parked for shipments that have been registered again: an entry of the change log, as their creation is.
--
-- KEYS[1]  change log (stream)    KEYS[2]  counts of the log (hash): `logged` grows by the shipments
-- ARGV     for each shipment two: its id, its meta (JSON)
--
-- Reply: how many shipments.
local call, ids, metas = redis.call, {}, {}
assert(#KEYS == 2 and #ARGV >= 2 and #ARGV % 2 == 0, 'half a shipment')
for at = 1, #ARGV, 2 do
  assert(ARGV[at] + 0 >= 1 and #ARGV[at + 1] > 0 and not string.find(ARGV[at + 1], '\n', 1, true), 'a shipment')
  ids[#ids + 1], metas[#metas + 1] = ARGV[at], ARGV[at + 1]
end
call('HINCRBY', KEYS[2], 'logged', #ids)
call('XADD', KEYS[1], '*', 's', table.concat(ids, ' '), 'created', table.concat(metas, '\n'))
return #ids
