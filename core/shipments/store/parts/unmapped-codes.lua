-- Part of commit.lua: updates the counts of unmapped codes for the shipments of a call.
--
-- No key is touched after it was deleted: while its slot migrates, Redis would refuse that halfway through the script.
local unmapped, emptied, untold = {}, {}, 0

local function noteCode(id, name, description, first, last, counts, events, isLeft)
  local code = unmapped[name]
  if not code then
    code = {counts = KEYS[counts], shipments = KEYS[counts + 1], events = 0, more = 0, left = {}, gone = {}}
    unmapped[name] = code
  end
  code.events = code.events + events
  local ids = isLeft == 1 and code.left or code.gone
  ids[#ids + 1] = id
  if events < 0 then return end
  code.more = code.more + events
  if not code.first or first + 0 < code.first + 0 then code.first = first end
  if not code.last or last + 0 >= code.last + 0 then code.last, code.description = last, description end
end

-- Codes that are in no shipment any more are deleted.
local function removeShipments(name, code)
  local gone = 0
  for _, id in ipairs(code.gone) do
    if redis.call('ZSCORE', code.shipments, id) then gone = gone + 1 end
  end
  if redis.call('ZCARD', code.shipments) == gone then
    emptied[#emptied + 1] = name
    redis.call('DEL', code.counts, code.shipments)
    return
  end
  for _, id in ipairs(code.gone) do redis.call('ZREM', code.shipments, id) end
end

local function keepCode(codes, limit, name, code)
  if redis.call('SISMEMBER', codes, name) == 0 then
    if code.more == 0 then return end
    if redis.call('SCARD', codes) >= limit then
      untold = untold + code.more
      return
    end
    redis.call('SADD', codes, name)
  end
  for _, id in ipairs(code.left) do redis.call('ZADD', code.shipments, id, id) end
  redis.call('HINCRBY', code.counts, 'events', code.events)
  if code.more > 0 then
    local seen = redis.call('HMGET', code.counts, 'first', 'last')
    if not seen[1] or code.first + 0 < seen[1] + 0 then redis.call('HSET', code.counts, 'first', code.first) end
    if not seen[2] or code.last + 0 >= seen[2] + 0 then
      redis.call('HSET', code.counts, 'last', code.last, 'description', code.description)
    end
  end
  removeShipments(name, code)
end

local function keepCodes(codes, limit)
  for name, code in pairs(unmapped) do keepCode(codes, limit, name, code) end
  for _, name in ipairs(emptied) do redis.call('SREM', codes, name) end
  return untold
end
