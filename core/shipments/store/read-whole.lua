#!lua flags=no-writes
-- Reads shipments with everything that is kept about them, each at one point in time.
--
-- KEYS     for each shipment five: the shipment (hash), its notifications (list), its stock releases (hash), its told topics
--          (hash), its webhook decisions (hash)
--
-- Reply: for each shipment six: alternating fields and values, empty if there is none; the notifications; alternating ids and
-- releases; alternating topics and times; a digest of these three; 1 while it has webhook decisions, else 0.
assert(#KEYS % 5 == 0, 'keys of a shipment')
-- part: side-digest
local reply = {}
for at = 1, #KEYS, 5 do
  reply[#reply + 1] = redis.call('HGETALL', KEYS[at])
  local digest = sideDigest(KEYS[at + 1], KEYS[at + 2], KEYS[at + 3])
  local hasSide = digest ~= ''
  reply[#reply + 1] = hasSide and redis.call('LRANGE', KEYS[at + 1], 0, -1) or {}
  reply[#reply + 1] = hasSide and redis.call('HGETALL', KEYS[at + 2]) or {}
  reply[#reply + 1] = hasSide and redis.call('HGETALL', KEYS[at + 3]) or {}
  reply[#reply + 1] = digest
  reply[#reply + 1] = redis.call('EXISTS', KEYS[at + 4])
end
return reply
