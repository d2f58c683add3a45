#!lua
-- Sets events of unknown parcels aside, unless something has been registered under their reference since they were judged.
-- Setting one aside again replaces what is kept of it, and restarts its time.
--
-- KEYS[1]      counts of the partition (hash: day -> events set aside that were sent on it last)
-- KEYS[2]      due (sorted set): hashes of parked events by when the first of theirs is over, milliseconds, or before that
-- KEYS[2i+1]   reference (string)
-- KEYS[2i+2]   parked events of the reference (hash: fact key -> `[receivedAtMs,place,event]`, with the time when it was sent
--              last at the end where that was later)
-- ARGV[1]      the service clock, milliseconds
-- ARGV[2]      milliseconds a parked event lives
-- ARGV[3]      events one reference may hold: one more displaces the one whose last sending is the longest ago
-- ARGV[4]      events the partition may hold
-- ARGV[4i+1]   fact key
-- ARGV[4i+2]   its place in the message
-- ARGV[4i+3]   event, JSON
-- ARGV[4i+4]   SHA-1 of what the reference held when the event was judged, empty for nothing
--
-- Everything is read before the first write, and no key is touched after it was emptied: Redis would refuse that while its slot
-- migrates.
--
-- Reply: for each event 1 = parked (or parked before), 0 = the reference has changed, 2 = the partition holds its limit,
-- 3 = parked in the place of an older one.
local call, counts, due, DAY_MS = redis.call, KEYS[1], KEYS[2], 86400000
local now, lifeMs, perReference, perPartition = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0
assert(#KEYS % 2 == 0 and #ARGV == 2 * #KEYS, 'a key or an argument too few')
for at = 6, #ARGV, 4 do assert(string.match(ARGV[at], '^%d+$'), 'a place') end
local today, oldest = math.floor(now / DAY_MS), math.floor((now - lifeMs) / DAY_MS)

-- Events set aside in the partition by day, and how they become more or fewer. Days that are over are deleted.
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

-- Events of a reference: what it stores, and what it holds at the end.
local references = {}
local function lookAt(key)
  local parked = {stored = {}, events = {}, count = 0, isWritten = false}
  local fields = call('HGETALL', key)
  for at = 1, #fields, 2 do
    local field, value = fields[at], fields[at + 1]
    local received, place = string.match(value, '^%[(%d+),(%d+),')
    local sent = string.match(value, ',(%d+)%]$') or received
    parked.stored[field] = true
    if now - sent >= lifeMs then leaves(sent)
    else parked.events[field], parked.count = {received = received, place = place, sent = sent}, parked.count + 1 end
  end
  references[key] = parked
  return parked
end

local function displaceOldest(parked)
  local field, first
  for other, one in pairs(parked.events) do
    local isOlder = not first or one.sent + 0 < first.sent + 0
      or (one.sent == first.sent and one.place + 0 < first.place + 0)
    if isOlder then field, first = other, one end
  end
  parked.events[field], parked.count = nil, parked.count - 1
  leaves(first.sent)
end

local function keep(parked, field, place, event)
  local known = parked.events[field]
  local received = known and known.received or ARGV[1]
  local sent = received ~= ARGV[1] and ',' .. ARGV[1] or ''
  place = known and known.place or place
  local value = '[' .. received .. ',' .. place .. ',' .. event .. sent .. ']'
  if known then leaves(known.sent) else parked.count = parked.count + 1 end
  parked.events[field] = {received = received, place = place, sent = ARGV[1], value = value}
  days[today], more[today], total = true, (more[today] or 0) + 1, total + 1
  parked.isWritten = true
end

local reply, new, isFresh = {}, {}, false
for at = 1, #KEYS / 2 - 1 do
  local key, field, judged = KEYS[2 * at + 2], ARGV[4 * at + 1], ARGV[4 * at + 4]
  local registered = call('GET', KEYS[2 * at + 1])
  if (registered and judged == '') or (registered and redis.sha1hex(registered) or '') ~= judged then
    reply[at] = 0
  else
    local parked = references[key] or lookAt(key)
    local isKnown, isFull = parked.events[field], parked.count >= perReference
    reply[at] = isKnown and 1 or isFull and 3 or total >= perPartition and 2 or 1
    if reply[at] == 3 then displaceOldest(parked) end
    if reply[at] ~= 2 then keep(parked, field, ARGV[4 * at + 2], ARGV[4 * at + 3]) end
  end
end

-- A hash that is new is due when its first event is over.
for key, parked in pairs(references) do
  if parked.isWritten then
    if not next(parked.stored) then new[#new + 1], new[#new + 2] = now + lifeMs, key end
    for field, one in pairs(parked.events) do
      if one.value then call('HSET', key, field, one.value) end
    end
    call('PEXPIRE', key, ARGV[2])
  end
  for field in pairs(parked.stored) do
    if not parked.events[field] then call('HDEL', key, field) end
  end
end
if #new > 0 then call('ZADD', due, unpack(new)) end
for day, number in pairs(more) do
  if number ~= 0 then call('HINCRBY', counts, day, number) end
  isFresh = isFresh or number > 0
end
if isFresh or #held > 0 then call('PEXPIRE', counts, lifeMs + 2 * DAY_MS) end
for _, day in ipairs(over) do call('HDEL', counts, day) end
return reply
