-- Part of park.lua: what the references hold, as far as it has to be read.
--
-- All events of a reference are read only where one is displaced or over: they may be 500 KB.
local references = {}

-- `events` that were read or are to be written, those `gone`, and the `count` of those that stay.
local function open(key)
  local parked = {events = {}, gone = {}, count = call('HLEN', key), isWhole = false, isWritten = false}
  parked.isNew, parked.isDue = parked.count == 0, (tonumber(call('ZSCORE', due, key) or '') or math.huge) <= now
  references[key] = parked
  return parked
end

local function goes(parked, field, sent)
  parked.events[field], parked.gone[field], parked.count = nil, true, parked.count - 1
  leaves(sent)
end

local function take(parked, field, value)
  local received, messageIndex = string.match(value, '^%[(%d+),(%d+),')
  local sent = string.match(string.sub(value, -20), ',(%d+)%]$') or received
  if now - sent >= lifeMs then
    goes(parked, field, sent)
  else
    parked.events[field] = {received = received, messageIndex = messageIndex, sent = sent}
  end
end

local function find(parked, key, field)
  if not (parked.events[field] or parked.gone[field] or parked.isWhole) then
    local value = call('HGET', key, field)
    if value then take(parked, field, value) end
  end
  return parked.events[field]
end

local function readWhole(parked, key)
  local fields = call('HGETALL', key)
  for at = 1, #fields, 2 do
    local field = fields[at]
    if not parked.events[field] and not parked.gone[field] then take(parked, field, fields[at + 1]) end
  end
  parked.isWhole, looks = true, looks - 1
end

local function displaceOldest(parked)
  local field, first
  for other, one in pairs(parked.events) do
    local isOlder = not first or one.sent + 0 < first.sent + 0
      or (one.sent == first.sent and one.messageIndex + 0 < first.messageIndex + 0)
    if isOlder then field, first = other, one end
  end
  goes(parked, field, first.sent)
end
