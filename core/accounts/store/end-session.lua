#!lua flags=allow-oom
-- Ends a session, also with full memory. A script, so that it is replicated and no failover restores the session.
--
-- KEYS[1]  session (string)
--
-- Reply: 1 = it existed, 0 = it did not.
return redis.call('DEL', KEYS[1])
