#!lua flags=allow-oom
-- Takes, renews or releases a lock: every change compares the owner atomically. Those who wait stand in a queue, and a free
-- lock goes to its head alone. Runs with full memory too: it adds some short members at most, and a lock that could not be
-- renewed would be lost by its holder.
--
-- KEYS[1]  the lock (string: its owner)
-- KEYS[2]  who waits for it (sorted set by turn)
-- KEYS[3]  until when each of them counts as alive (sorted set, Redis clock, milliseconds)
-- ARGV[1]  owner
-- ARGV[2]  'take' (free, or the owner's already), 'renew', 'release', or 'leave' (the owner waits no longer)
-- ARGV[3]  milliseconds that the lock lasts from now on; 0 with 'release' and 'leave'
-- ARGV[4]  with 'take', milliseconds that the owner stays in the queue until it asks again; 0 = it does not wait
-- ARGV[5]  owners that may wait
--
-- Reply: 1 = done; 0 = the lock is another's or has expired, and the owner does not wait for it; -n = it is the n-th who waits.
local owner, verb, leaseMs = ARGV[1], ARGV[2], tonumber(ARGV[3])
local waitMs, most = tonumber(ARGV[4]), tonumber(ARGV[5])
local verbs = { take = true, renew = true, release = true, leave = true }
if not leaseMs or not waitMs or not most or not verbs[verb] then
  return redis.error_reply('ERR lock.lua: bad arguments')
end
local call = redis.call
local function leave(one)
  call('ZREM', KEYS[2], one)
  call('ZREM', KEYS[3], one)
end
if verb == 'leave' then
  leave(owner)
  return 1
end
local holder = call('GET', KEYS[1])
if verb ~= 'take' or holder == owner then
  if holder ~= owner then return 0 end
  if verb == 'release' then return call('DEL', KEYS[1]) end
  return call('PEXPIRE', KEYS[1], leaseMs)
end

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, dead in ipairs(call('ZRANGEBYSCORE', KEYS[3], '-inf', now)) do leave(dead) end
local head = call('ZRANGE', KEYS[2], 0, 0)[1]
if not holder and (not head or head == owner) then
  call('SET', KEYS[1], owner, 'PX', leaseMs)
  leave(owner)
  return 1
end
if waitMs == 0 then return 0 end
if not call('ZSCORE', KEYS[2], owner) then
  if call('ZCARD', KEYS[2]) >= most then return 0 end
  local last = call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2] or 0
  call('ZADD', KEYS[2], last + 1, owner)
end
call('ZADD', KEYS[3], now + waitMs, owner)
call('PEXPIRE', KEYS[2], waitMs)
call('PEXPIRE', KEYS[3], waitMs)
return -(call('ZRANK', KEYS[2], owner) + 1)
