#!lua
-- Sets events of unknown parcels aside, unless their reference has been registered in between.
--
-- KEYS[1]      counts of the partition (hash: day -> events set aside on it)
-- KEYS[2i]     reference (string)
-- KEYS[2i+1]   parked events of the reference (hash: fact key -> `[receivedAtMs,place,event]`)
-- ARGV[1]      the service clock, milliseconds
-- ARGV[2]      milliseconds a parked event lives
-- ARGV[3]      events one reference may hold
-- ARGV[4]      events the partition may hold
-- ARGV[2i+3]   fact key
-- ARGV[2i+4]   parked event, JSON
--
-- Reply: for each event 1 = parked (or parked before), 0 = the reference is known now, 2 = the reference or the
-- partition holds its limit.
local counts = KEYS[1]
local now, lifeMs = tonumber(ARGV[1]), tonumber(ARGV[2])
local perReference, perPartition = tonumber(ARGV[3]), tonumber(ARGV[4])
local DAY_MS = 86400000
local today, oldest = math.floor(now / DAY_MS), math.floor((now - lifeMs) / DAY_MS)

-- What stands in the partition. Days whose events have all outlived their time are forgotten.
local total = 0
local days = redis.call('HGETALL', counts)
for at = 1, #days, 2 do
  if tonumber(days[at]) < oldest then redis.call('HDEL', counts, days[at])
  else total = total + tonumber(days[at + 1]) end
end

-- A hash lives on with its youngest event; the old ones in it must go all the same.
local function dropOld(parked)
  local held = redis.call('HGETALL', parked)
  for at = 1, #held, 2 do
    local receivedAt = tonumber(string.match(held[at + 1], '^%[(%d+)'))
    if receivedAt and now - receivedAt >= lifeMs then
      redis.call('HDEL', parked, held[at])
      local day = math.floor(receivedAt / DAY_MS)
      if day >= oldest and redis.call('HEXISTS', counts, day) == 1 then
        redis.call('HINCRBY', counts, day, -1)
        total = total - 1
      end
    end
  end
end

local reply, cleaned = {}, {}
for at = 1, (#KEYS - 1) / 2 do
  local parked, field = KEYS[2 * at + 1], ARGV[2 * at + 3]
  if redis.call('EXISTS', KEYS[2 * at]) == 1 then
    reply[at] = 0
  else
    if not cleaned[parked] then
      dropOld(parked)
      cleaned[parked] = true
    end
    if redis.call('HEXISTS', parked, field) == 1 then
      reply[at] = 1
    elseif total >= perPartition or redis.call('HLEN', parked) >= perReference then
      reply[at] = 2
    else
      redis.call('HSET', parked, field, ARGV[2 * at + 4])
      redis.call('PEXPIRE', parked, lifeMs)
      redis.call('HINCRBY', counts, today, 1)
      total = total + 1
      reply[at] = 1
    end
  end
end
redis.call('PEXPIRE', counts, lifeMs + 2 * DAY_MS)
return reply
