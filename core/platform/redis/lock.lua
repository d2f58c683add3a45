#!lua flags=allow-oom
-- Takes, renews or releases a lock: every change compares the owner atomically. Those who wait stand in a queue, and a free
-- lock goes to its head alone. The parties of the owners take turns: whoever comes stands behind one of each other party that
-- waits, and behind all of its own. Runs with full memory too: it adds some short members at most, and a lock that could not be
-- renewed would be lost by its holder.
--
-- KEYS[1]  the lock (string: its owner)
-- KEYS[2]  who waits for it (sorted set by turn; one turn has one of each party at most)
-- KEYS[3]  until when each of them counts as alive (sorted set, Redis clock, milliseconds)
--   'renew' and 'release' need neither, nor does 'take' of a lock that nobody waits for: a call of one key is answered while its slot
--   is on its way to another master
-- ARGV[1]  owner: `<party>:<token>`, or a token alone, which is of the party of all such
-- ARGV[2]  'take' (free, or the owner's already), 'renew', 'release', or 'leave' (the owner waits no longer)
-- ARGV[3]  milliseconds that the lock lasts from now on; 0 with 'release' and 'leave'
-- ARGV[4]  with 'take', milliseconds that the owner stays in the queue until it asks again; 0 = it does not wait
-- ARGV[5]  owners that may wait
-- ARGV[6]  owners of one party that may wait
--
-- Reply: 1 = done; 0 = the lock is another's or has expired, and the owner does not wait for it; -n = it is the n-th who waits.
local owner, verb, leaseMs = ARGV[1], ARGV[2], tonumber(ARGV[3])
local waitMs, most, mostOfParty = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local verbs = { take = true, renew = true, release = true, leave = true }
if not leaseMs or not waitMs or not most or not mostOfParty or not verbs[verb] then
  return redis.error_reply('ERR lock.lua: bad arguments')
end
local call = redis.call
local function leave(one)
  call('ZREM', KEYS[2], one)
  call('ZREM', KEYS[3], one)
end
local function partyOf(one) return string.match(one, '^([^:]*):') or '' end
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

if not KEYS[2] then
  if holder then return 0 end
  call('SET', KEYS[1], owner, 'PX', leaseMs)
  return 1
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
  local queue, party, own = call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES'), partyOf(owner), 0
  local last = tonumber(queue[2] or 0)
  for at = 1, #queue, 2 do
    if partyOf(queue[at]) == party then
      last = math.max(last, tonumber(queue[at + 1]))
      own = own + 1
    end
  end
  if #queue / 2 >= most or own >= mostOfParty then return 0 end
  call('ZADD', KEYS[2], last + 1, owner)
end
call('ZADD', KEYS[3], now + waitMs, owner)
call('PEXPIRE', KEYS[2], waitMs)
call('PEXPIRE', KEYS[3], waitMs)
return -(call('ZRANK', KEYS[2], owner) + 1)
