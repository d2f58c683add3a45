#!lua
-- Parks events of unknown parcels, unless something has been registered under their reference since they were judged.
-- Parking one again replaces what is kept of it, and restarts its time.
--
-- KEYS[1]      counts of the partition (hash: day -> parked events that were sent on it last)
-- KEYS[2]      due (sorted set): hashes of parked events by how long the first of theirs is kept at most, or before that
-- KEYS[2i+1]   reference (string)
-- KEYS[2i+2]   parked events of the reference (hash: fact key -> `[receivedAtMs,messageIndex,event]`, with the time when it was sent
--              last at the end where that was later)
-- ARGV[1]      the service clock, milliseconds
-- ARGV[2]      milliseconds a parked event is kept at most
-- ARGV[3]      events one reference may hold: one more displaces the one whose last sending is the longest ago
-- ARGV[4]      events the partition may hold
-- ARGV[5]      whole references that one call reads: those at their limit, and those with an event past that time
-- ARGV[4i+2]   fact key
-- ARGV[4i+3]   its index in the message
-- ARGV[4i+4]   event, JSON
-- ARGV[4i+5]   SHA-1 of what the reference held when the event was classified, empty for nothing
--
-- Everything is read before the first write, and no key is touched after it was emptied: Redis would refuse that while its slot
-- migrates.
--
-- Reply: for each event 1 = parked (or parked before), 0 = the reference has changed, 2 = the partition holds its limit,
-- 3 = parked instead of an older one, 4 = not looked at: for the next call.
local call, counts, due, DAY_MS = redis.call, KEYS[1], KEYS[2], 86400000
local now, lifeMs, perReference, perPartition, looks = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0, ARGV[5] + 0
assert(#KEYS % 2 == 0 and #ARGV == 2 * #KEYS + 1 and looks >= 1, 'a key or an argument too few')
assert(string.match(ARGV[1], '^%d+$'), 'a time in whole milliseconds')
for at = 7, #ARGV, 4 do assert(string.match(ARGV[at], '^%d+$'), 'a message index') end
local today, oldest = math.floor(now / DAY_MS), math.floor((now - lifeMs) / DAY_MS)

-- Events parked in the partition by day, and how they become more or fewer. Days that are over are deleted.
local total, days, more, over = 0, {}, {}, {}
local held = call('HGETALL', counts)
for at = 1, #held, 2 do
  local day = tonumber(held[at])
  if day < oldest then over[#over + 1] = held[at]
  else days[day], more[day], total = true, 0, total + held[at + 1] end
end

local function leaves(sentAt)
  local day = math.floor(sentAt / DAY_MS)
  if days[day] then more[day], total = more[day] - 1, total - 1 end
end

-- part: parked-references

local function keep(parked, field, messageIndex, event)
  local known = parked.events[field]
  local received = known and known.received or ARGV[1]
  local sent = received ~= ARGV[1] and ',' .. ARGV[1] or ''
  messageIndex = known and known.messageIndex or messageIndex
  local value = '[' .. received .. ',' .. messageIndex .. ',' .. event .. sent .. ']'
  if known then leaves(known.sent) else parked.count = parked.count + 1 end
  parked.events[field] = {received = received, messageIndex = messageIndex, sent = ARGV[1], value = value}
  days[today], more[today], total = true, (more[today] or 0) + 1, total + 1
  parked.isWritten = true
end

local reply, new = {}, {}
for at = 1, #KEYS / 2 - 1 do
  local key, field, judged = KEYS[2 * at + 2], ARGV[4 * at + 2], ARGV[4 * at + 5]
  local registered = call('GET', KEYS[2 * at + 1])
  if (registered and redis.sha1hex(registered) or '') ~= judged then
    reply[at] = 0
  else
    local parked = references[key] or open(key)
    local isKnown = find(parked, key, field)
    local wantsAll = parked.isDue or (not isKnown and parked.count >= perReference)
    if wantsAll and not parked.isWhole and looks > 0 then readWhole(parked, key) end
    local isFull = parked.count >= perReference
    reply[at] = isKnown and 1 or isFull and (parked.isWhole and 3 or 4) or total >= perPartition and 2 or 1
    if reply[at] == 3 then displaceOldest(parked) end
    if reply[at] % 2 == 1 then keep(parked, field, ARGV[4 * at + 3], ARGV[4 * at + 4]) end
  end
end

-- A hash that is new is due when its first event has been kept for as long as one may be.
for key, parked in pairs(references) do
  if parked.isWritten then
    if parked.isNew then new[#new + 1], new[#new + 2] = now + lifeMs, key end
    for field, one in pairs(parked.events) do
      if one.value then call('HSET', key, field, one.value) end
    end
    call('PEXPIRE', key, ARGV[2])
  end
  for field in pairs(parked.gone) do
    if not parked.events[field] then call('HDEL', key, field) end
  end
end
if #new > 0 then call('ZADD', due, unpack(new)) end
for day, number in pairs(more) do
  if number ~= 0 then call('HINCRBY', counts, day, number) end
end
call('PEXPIRE', counts, lifeMs + 2 * DAY_MS)
for _, day in ipairs(over) do call('HDEL', counts, day) end
return reply
