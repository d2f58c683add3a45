-- Part of unpark.lua and expire-parked.lua: takes parked events out of the partition's count by day.
--
-- No key is touched after it was emptied: Redis would refuse that while the key's slot migrates.
local fewer = {}

-- A parked event is `[receivedAtMs,messageIndex,event]`, with the time when it was sent last at the end where that was later.
local function sentAt(value)
  return tonumber(string.match(string.sub(value, -20), ',(%d+)%]$') or string.match(value, '^%[(%d+)'))
end

local function countOut(sent)
  local day = string.format('%d', math.floor(sent / 86400000))
  fewer[day] = (fewer[day] or 0) + 1
end

local function keepCounts(counts)
  local over = {}
  for day, number in pairs(fewer) do
    local held = tonumber(redis.call('HGET', counts, day))
    if held and held > number then redis.call('HINCRBY', counts, day, -number)
    elseif held then over[#over + 1] = day end
  end
  for _, day in ipairs(over) do redis.call('HDEL', counts, day) end
end
