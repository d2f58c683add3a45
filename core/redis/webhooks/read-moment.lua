#!lua flags=no-writes
-- Reads a shipment, the messages about it and the webhook decisions about it, at one point in time.
--
-- KEYS[1]  shipment (hash)
-- KEYS[2]  notifications sent about it (list)
-- KEYS[3]  webhook decisions about it (hash)
--
-- Reply: alternating fields and values of the shipment, empty if there is none; the notifications; alternating event ids
-- and decisions.
return { redis.call('HGETALL', KEYS[1]), redis.call('LRANGE', KEYS[2], 0, -1), redis.call('HGETALL', KEYS[3]) }
