#!lua flags=no-writes
-- Reads shipments with everything that is kept about them, each at one point in time.
--
-- KEYS     for each shipment five: the shipment (hash), its notifications (list), its stock releases (hash), its webhook
--          decisions (hash), its told topics (hash)
--
-- Reply: for each shipment four: alternating fields and values, empty if there is none; the notifications; alternating ids and
-- releases; 1 while it has decisions or topics, else 0.
local reply = {}
for at = 1, #KEYS, 5 do
  reply[#reply + 1] = redis.call('HGETALL', KEYS[at])
  reply[#reply + 1] = redis.call('LRANGE', KEYS[at + 1], 0, -1)
  reply[#reply + 1] = redis.call('HGETALL', KEYS[at + 2])
  reply[#reply + 1] = redis.call('EXISTS', KEYS[at + 3], KEYS[at + 4]) > 0 and 1 or 0
end
return reply
