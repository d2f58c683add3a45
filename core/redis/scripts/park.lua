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
-- Everything is read before the first write, and expired events are deleted last: no key is touched after it was emptied, since
-- Redis would refuse that while the key's slot migrates.
--
-- Reply: for each event 1 = parked (or parked before), 0 = the reference is known now, 2 = the reference or the
-- partition holds its limit.
local call, counts, DAY_MS = redis.call, KEYS[1], 86400000
local now, lifeMs, perReference, perPartition = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0
assert(#KEYS % 2 == 1 and #ARGV == #KEYS + 3, 'a key or an argument too few')
local today, oldest = math.floor(now / DAY_MS), math.floor((now - lifeMs) / DAY_MS)

-- Events set aside in the partition, by day, before and after this call. Days whose events have all expired are deleted.
local total, days, more, over = 0, {}, {}, {}
local held = call('HGETALL', counts)
for at = 1, #held, 2 do
  local day = tonumber(held[at])
  if day < oldest then over[#over + 1] = held[at]
  else days[day], more[day], total = true, 0, total + held[at + 1] end
end

-- Events of a reference. A hash lives as long as its youngest event; expired ones in it are deleted all the same.
local references = {}
local function lookAt(key)
  local parked = {held = {}, count = 0, old = {}, added = {}}
  local fields = call('HGETALL', key)
  for at = 1, #fields, 2 do
    local receivedAt = tonumber(string.match(fields[at + 1], '^%[(%d+)'))
    if receivedAt and now - receivedAt >= lifeMs then
      parked.old[#parked.old + 1] = fields[at]
      local day = math.floor(receivedAt / DAY_MS)
      if days[day] then more[day], total = more[day] - 1, total - 1 end
    else
      parked.held[fields[at]], parked.count = true, parked.count + 1
    end
  end
  references[key] = parked
  return parked
end

local reply, isFresh = {}, false
for at = 1, (#KEYS - 1) / 2 do
  local key, field = KEYS[2 * at + 1], ARGV[2 * at + 3]
  if call('EXISTS', KEYS[2 * at]) == 1 then
    reply[at] = 0
  else
    local parked = references[key] or lookAt(key)
    if parked.held[field] then
      reply[at] = 1
    elseif total >= perPartition or parked.count >= perReference then
      reply[at] = 2
    else
      parked.held[field], parked.count = true, parked.count + 1
      parked.added[#parked.added + 1] = {field, ARGV[2 * at + 4]}
      more[today], total, isFresh = (more[today] or 0) + 1, total + 1, true
      reply[at] = 1
    end
  end
end

for key, parked in pairs(references) do
  for _, one in ipairs(parked.added) do call('HSET', key, one[1], one[2]) end
  if #parked.added > 0 then call('PEXPIRE', key, ARGV[2]) end
  for _, field in ipairs(parked.old) do call('HDEL', key, field) end
end
for day, number in pairs(more) do
  if number ~= 0 then call('HINCRBY', counts, day, number) end
end
if isFresh or #held > 0 then call('PEXPIRE', counts, lifeMs + 2 * DAY_MS) end
for _, day in ipairs(over) do call('HDEL', counts, day) end
return reply
