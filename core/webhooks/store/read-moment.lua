#!lua flags=no-writes
-- Reads a shipment, the messages about it and the webhook decisions about it, at one point in time. One of other channels is not
-- touched: it takes no longer than one that does not exist.
--
-- KEYS[1]  shipment (hash)
-- KEYS[2]  notifications sent about it (list)
-- KEYS[3]  webhook decisions about it (hash)
-- KEYS[4…] indices by id (sorted sets) of the channels that it may be of
-- ARGV[1]  its member of the indices
--
-- Reply: alternating fields and values of the shipment, empty if there is none; the notifications; alternating event ids
-- and decisions.
local member = assert(ARGV[1], 'a member')
for at = 4, #KEYS do
  if redis.call('ZSCORE', KEYS[at], member) then
    return { redis.call('HGETALL', KEYS[1]), redis.call('LRANGE', KEYS[2], 0, -1), redis.call('HGETALL', KEYS[3]) }
  end
end
return { {}, {}, {} }
