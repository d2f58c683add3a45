#!lua flags=allow-oom
-- Ends a session, also when memory is full: as a script, so that no failover brings it back.
--
-- KEYS[1]  session (string)
--
-- Reply: 1 = it was there, 0 = it was not.
return redis.call('DEL', KEYS[1])
