#!lua flags=allow-oom
-- Takes, renews or releases a lock: every change compares the owner atomically. Runs with full memory too: it adds
-- one short key at most, and a lock that could not be renewed would be lost by its holder.
--
-- KEYS[1]  the lock (string: its owner)
-- ARGV[1]  owner
-- ARGV[2]  'take' (free, or the owner's already), 'renew' or 'release'
-- ARGV[3]  milliseconds that the lock lasts from now on; 0 with 'release'
--
-- Reply: 1 = done, 0 = the lock is another's or has expired.
local owner, verb, leaseMs = ARGV[1], ARGV[2], tonumber(ARGV[3])
if not leaseMs or not (verb == 'take' or verb == 'renew' or verb == 'release') then
  return redis.error_reply('ERR lock.lua: bad arguments')
end
local holder = redis.call('GET', KEYS[1])
if verb == 'take' and not holder then
  redis.call('SET', KEYS[1], owner, 'PX', leaseMs)
  return 1
end
if holder ~= owner then return 0 end
if verb == 'release' then return redis.call('DEL', KEYS[1]) end
return redis.call('PEXPIRE', KEYS[1], leaseMs)
