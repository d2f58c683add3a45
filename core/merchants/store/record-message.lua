#!lua flags=allow-oom
-- Records the outcome of a message and deletes it; the first outcome counts. Runs with full memory too: the message was
-- sent and must not be sent again, and more memory is freed than used.
--
-- KEYS[1]  message (hash)    KEYS[2]  notifications of the shipment (list, newest first)
-- ARGV[1]  notification (JSON)    ARGV[2]  notifications a shipment keeps
--
-- Reply: 1 = recorded, 0 = it was recorded before.
assert(ARGV[1] and ARGV[2] + 0 >= 1, 'a notification, and how many are kept')
if redis.call('DEL', KEYS[1]) == 0 then return 0 end
redis.call('LPUSH', KEYS[2], ARGV[1])
redis.call('LTRIM', KEYS[2], 0, ARGV[2] - 1)
return 1
