#!lua flags=allow-oom
-- Records what became of a message, which leaves the store; the first word counts. Runs with a full memory too: the message has
-- gone out and must not go out again, and more leaves than comes.
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
