#!lua
-- Corrects a shipment: its record and meta, and the values that search finds it by. Compares the version and sets; holds no rules.
--
-- KEYS[1]  the shipment (hash)    KEYS[2]  its channel's index by id (sorted set)
-- KEYS[3]  what has left the channel's rows (hash, absent where nothing ever has)
-- KEYS[4…] for each value that it loses, then for each that it gets: the shipments with the value (set), their bitmap by rank
-- ARGV[1]  its head as it was read    ARGV[2]  its new head    ARGV[3]  its state (packed)    ARGV[4]  its record (packed)
-- ARGV[5]  its id    ARGV[6]  its rank    ARGV[7]  shipments with an exact value from which on they stand in a bitmap too
-- ARGV[8]  values that it loses    ARGV[9]  digits of an index member
--
-- Reply: 1, or 0 where its version has moved on, and nothing is done.
local call, id, rank, many, lost = redis.call, ARGV[5], ARGV[6] + 0, ARGV[7] + 0, ARGV[8] + 0
local padded = '%0' .. ARGV[9] + 0 .. 'd'
assert(#KEYS % 2 == 1 and #KEYS >= 3 + 2 * lost and lost >= 0 and rank >= 0 and many >= 0, 'keys of values, or a number')
assert(#ARGV == 9 and id + 0 >= 1 and #ARGV[2] > 0 and #ARGV[3] > 0 and #ARGV[4] > 0, 'a shipment')
if call('HGET', KEYS[1], 'v') ~= ARGV[1] then return 0 end

-- part: exact-values

call('HSET', KEYS[1], 'v', ARGV[2], 'st', ARGV[3], 'c', ARGV[4])
local channel = {ids = KEYS[2], gone = call('HGET', KEYS[3], 'gone')}
for at = 4, #KEYS, 2 do
  local set, bits = KEYS[at], KEYS[at + 1]
  if at >= 4 + 2 * lost then
    addExact(channel, set, bits, id, rank)
  else
    call('SREM', set, id)
    if call('EXISTS', set) == 0 then call('DEL', bits)
    elseif call('EXISTS', bits) == 1 then call('SETBIT', bits, rank, 0) end
  end
end
return 1
