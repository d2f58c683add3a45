#!lua flags=allow-oom
-- Renews or releases a lock, if it is still its owner's. Runs with a full memory too: it adds nothing.
--
-- KEYS[1]  the lock (string: its owner)
-- ARGV[1]  owner    ARGV[2]  'renew' or 'release'    ARGV[3]  milliseconds a renewed lock lasts
--
-- Reply: 1 = done, 0 = the lock is another's or has expired.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] == 'renew' then return redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
return redis.call('DEL', KEYS[1])
