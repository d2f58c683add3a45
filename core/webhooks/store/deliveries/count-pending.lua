#!lua flags=no-writes
-- Counts the deliveries that are pending at endpoints of a partition, at one moment: they move between these keys.
--
-- KEYS[1]  leases (sorted set)
-- KEYS     then for each endpoint two: its first attempts (list), its retries (sorted set)
--
-- Reply: how many.
local pending = redis.call('ZCARD', KEYS[1])
for at = 2, #KEYS, 2 do
  pending = pending + redis.call('LLEN', KEYS[at]) + redis.call('ZCARD', KEYS[at + 1])
end
return pending
