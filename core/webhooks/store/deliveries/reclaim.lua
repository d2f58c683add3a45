#!lua
-- Puts back deliveries whose lease expired: those that a killed process was sending are sent again.
--
-- KEYS[1]  endpoints with first attempts (sorted set by turn)    KEYS[2]  endpoints with retries (sorted set by due time)
-- KEYS[3]  leases: `endpoint delivery lease` (sorted set by their end)
-- KEYS[4]  under way per endpoint (hash), as in `lease.lua`      KEYS[5]  counter of turns
-- KEYS[6]  failing endpoints (sorted set)
-- KEYS[7]  ledger (hash): `webhook:failed` grows by expired deliveries
-- then, for each lease, three: its delivery (hash), first attempts (list) and retries (sorted set) of its endpoint
-- ARGV[1]  the service clock, milliseconds
-- ARGV[2]  where the scores of failing endpoints begin in the rings
-- then the leases just seen as expired, 100 at most; those that were renewed or settled since are not changed
--
-- A delivery expires 30 days after its creation, wherever it is queued: it has failed then.
--
-- Reply: how many leases were removed.
local firstRing, retryRing, leases, flight, turns, failing, ledger = unpack(KEYS, 1, 7)
local FIXED_KEYS, FIXED_ARGUMENTS, MOST = 7, 2, 100
local call, now, failingFrom = redis.call, tonumber(ARGV[1]), tonumber(ARGV[2])
local members = { unpack(ARGV, FIXED_ARGUMENTS + 1, FIXED_ARGUMENTS + MOST) }
assert(now and failingFrom and #members == #ARGV - FIXED_ARGUMENTS, 'malformed arguments')
assert(#KEYS == FIXED_KEYS + 3 * #members, 'three keys belong to each lease')
for at, member in ipairs(members) do assert(string.match(member, '^%S+ %S+ %S+$'), 'malformed lease') end
if #members == 0 then return 0 end

local time = call('TIME')
local clock = time[1] * 1000 + math.floor(time[2] / 1000)
local ends = call('ZMSCORE', leases, unpack(members))
local byEndpoint, ids, ended, gone, flights, none = {}, {}, {}, 0, {}, {}
for at, member in ipairs(members) do
  if ends[at] and tonumber(ends[at]) <= clock then
    local endpoint, id, outside = string.match(member, '^(%S+) (%S+) (w?)')
    local index = FIXED_KEYS + 3 * (at - 1)
    local own = byEndpoint[endpoint]
    if not own then
      own = { queue = KEYS[index + 2], retries = KEYS[index + 3], firsts = {}, due = {} }
      byEndpoint[endpoint], ids[#ids + 1] = own, endpoint
    end
    local state = call('HMGET', KEYS[index + 1], 's', 'd')
    if state[1] == 'queued' then own.firsts[#own.firsts + 1] = id
    elseif state[1] == 'waiting' then own.due[#own.due + 1], own.due[#own.due + 2] = tonumber(state[2]) or now, id
    else gone = gone + 1 end
    local field = outside == 'w' and 'w ' .. endpoint or endpoint
    ended[#ended + 1], flights[field] = member, (flights[field] or 0) + 1
  end
end
if #ended == 0 then return 0 end

local since, stands = call('ZMSCORE', failing, unpack(ids)), call('ZMSCORE', firstRing, unpack(ids))
for at, endpoint in ipairs(ids) do
  local own, from = byEndpoint[endpoint], since[at] and failingFrom or 0
  if #own.firsts > 0 then call('LPUSH', own.queue, unpack(own.firsts)) end
  if #own.due > 0 then call('ZADD', own.retries, unpack(own.due)) end
  if not stands[at] and call('EXISTS', own.queue) == 1 then
    call('ZADD', firstRing, from + call('INCR', turns), endpoint)
  end
  local first = call('ZRANGE', own.retries, 0, 0, 'WITHSCORES')
  if first[2] then call('ZADD', retryRing, from + first[2], endpoint) end
end
for field, n in pairs(flights) do if call('HINCRBY', flight, field, -n) <= 0 then none[#none + 1] = field end end
if gone > 0 then call('HINCRBY', ledger, 'webhook:failed', gone) end
if #none > 0 then call('HDEL', flight, unpack(none)) end
call('ZREM', leases, unpack(ended))
return #ended
