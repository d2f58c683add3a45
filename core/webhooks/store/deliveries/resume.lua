#!lua
-- Returns endpoints whose pause is over to the rings, behind the others.
--
-- KEYS[1]  endpoints with first attempts (sorted set by turn)    KEYS[2]  endpoints with retries (sorted set by due time)
-- KEYS[3]  paused endpoints (sorted set by the end of their pause)
-- KEYS[4]  failing endpoints (sorted set)                        KEYS[5]  counter of turns
-- then, for each endpoint, two: its first attempts (list) and its retries (sorted set)
-- ARGV[1]  the service clock, milliseconds    ARGV[2]  where the scores of failing endpoints begin in the rings
-- then the endpoints just seen, 100 at most; those that were paused again since are not changed
--
-- Reply: how many have been resumed.
local firstRing, retryRing, pauses, failing, turns = unpack(KEYS, 1, 5)
local FIXED_KEYS, FIXED_ARGUMENTS, MOST = 5, 2, 100
local call, now, failingFrom = redis.call, tonumber(ARGV[1]), tonumber(ARGV[2])
local ids = { unpack(ARGV, FIXED_ARGUMENTS + 1, FIXED_ARGUMENTS + MOST) }
assert(now and failingFrom and #ids == #ARGV - FIXED_ARGUMENTS, 'malformed arguments')
assert(#KEYS == FIXED_KEYS + 2 * #ids, 'two keys belong to each endpoint')
if #ids == 0 then return 0 end

local ends, since, stands = call('ZMSCORE', pauses, unpack(ids)), call('ZMSCORE', failing, unpack(ids)), call('ZMSCORE', firstRing, unpack(ids))
local resumed = {}
for at, endpoint in ipairs(ids) do
  if ends[at] and tonumber(ends[at]) <= now then
    local from, place = since[at] and failingFrom or 0, FIXED_KEYS + 2 * at
    resumed[#resumed + 1] = endpoint
    if not stands[at] and call('EXISTS', KEYS[place - 1]) == 1 then
      call('ZADD', firstRing, from + call('INCR', turns), endpoint)
    end
    local first = call('ZRANGE', KEYS[place], 0, 0, 'WITHSCORES')
    if first[2] then call('ZADD', retryRing, from + first[2], endpoint) end
  end
end
if #resumed > 0 then call('ZREM', pauses, unpack(resumed)) end
return #resumed
