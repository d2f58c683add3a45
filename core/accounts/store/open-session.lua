#!lua
-- Stores a new session. A script, so that replicas have it before its cookie is sent.
--
-- KEYS[1]  session (string)
-- ARGV[1]  record (JSON)    ARGV[2]  milliseconds it is kept
--
-- Reply: 1.
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
