#!lua flags=no-writes
-- Reads a shipment, the messages about it and the webhook decisions about it, at one moment.
--
-- KEYS[1]  shipment (hash)
-- KEYS[2]  notifications sent about it (list)
-- KEYS[3]  webhook decisions about it (hash)
--
-- Reply: fields and values of the shipment in turn, an empty list where there is none; the notifications; event ids and
-- decisions in turn.
return { redis.call('HGETALL', KEYS[1]), redis.call('LRANGE', KEYS[2], 0, -1), redis.call('HGETALL', KEYS[3]) }
