#!lua
-- Hands out due work under a lease. A lease that has ended puts its work back. The owner whose turn is longest ago comes first, and of
-- the work of one owner what waits longest.
--
-- KEYS[1]  waiting work (sorted set by due time, service clock, milliseconds)
-- KEYS[2]  leases (sorted set by their end, clock of Redis, milliseconds)
-- KEYS[3]  work -> lease (hash)    KEYS[4]  counter of leases
-- KEYS[5]  work -> its owner (hash); work without an owner comes before the others
-- KEYS[6]  owner -> the lease of its latest turn (hash)
-- ARGV[1]  the service clock, milliseconds
-- ARGV[2]  milliseconds a lease lasts, by the clock of Redis, so that a moved test clock ends no lease
-- ARGV[3]  pieces of work wanted
--
-- Work is added to its new key before it leaves the old one: no key is touched after it was emptied, since Redis would
-- refuse that while the key's slot migrates.
--
-- Reply: for each piece its id and its lease.
local call, waiting, leases, holders, counter, owners, turns = redis.call, unpack(KEYS)
local LOOKED_AT, TURNS_KEPT_SECONDS = 200, 3600
local now, lasts, wanted = ARGV[1], ARGV[2] + 0, ARGV[3]
assert(tonumber(now) and string.match(wanted, '^%d+$'), 'a time, or how many')
local time = call('TIME')
local clock = time[1] * 1000 + math.floor(time[2] / 1000)
local ended = call('ZRANGEBYSCORE', leases, '-inf', clock, 'LIMIT', 0, 100)
for _, id in ipairs(ended) do call('ZADD', waiting, 'NX', now, id) end
local due = call('ZRANGEBYSCORE', waiting, '-inf', now, 'LIMIT', 0, math.max(LOOKED_AT, wanted))
local isTaken, reply, ownerOf, turnOf = {}, {}, {}, {}
if #due > 0 and call('EXISTS', owners) == 1 then
  for at, owner in ipairs(call('HMGET', owners, unpack(due))) do ownerOf[due[at]] = owner or nil end
  for _, owner in pairs(ownerOf) do turnOf[owner] = tonumber(call('HGET', turns, owner) or 0) end
end

local function turn(id) return turnOf[ownerOf[id]] or 0 end

local function take(id)
  local lease = call('INCR', counter)
  call('ZADD', leases, clock + lasts, id)
  call('HSET', holders, id, tostring(lease))
  isTaken[id], reply[#reply + 1], reply[#reply + 2] = true, id, tostring(lease)
  local owner = ownerOf[id]
  if not owner then return end
  turnOf[owner] = lease
  call('HSET', turns, owner, tostring(lease))
  call('EXPIRE', turns, TURNS_KEPT_SECONDS)
end

for _ = 1, math.min(wanted, #due) do
  local first
  for _, id in ipairs(due) do
    if not isTaken[id] and (not first or turn(id) < turn(first)) then first = id end
  end
  take(first)
end
for id in pairs(isTaken) do call('ZREM', waiting, id) end
for _, id in ipairs(ended) do
  if not isTaken[id] then
    call('ZREM', leases, id)
    call('HDEL', holders, id)
  end
end
return reply
