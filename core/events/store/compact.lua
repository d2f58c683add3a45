#!lua
-- Makes references of archived shipments compact. Repeating it changes nothing.
--
-- KEYS     for each reference: its candidates (string, a line each, as in register.lua), then a bucket of each generation (hash),
--          the newest first
-- ARGV[1]  generations    ARGV[3]  bytes of an id in a value
-- ARGV[2]  a list (MessagePack), for each reference four: start of the line that identifies the shipment, the line of an archived
--   shipment, its name in a bucket ('' = it stays as it is), its value there, which begins with the shipment's id
--
-- The only candidate goes into the bucket; among others it stands as an archived one.
--
-- Reply: how many stand in buckets.
local call, generations, compact, bytes = redis.call, ARGV[1] + 0, 0, ARGV[3] + 0
local per = generations + 1
local list = cmsgpack.unpack(ARGV[2])
assert(generations >= 1 and #KEYS % per == 0 and #list == 4 * #KEYS / per, 'a key or an argument too few')
for at = 1, #list, 4 do
  assert(string.match(list[at], '^%[%d+,$') and string.sub(list[at + 1], 1, #list[at]) == list[at], 'a line')
  assert(type(list[at + 2]) == 'string' and #list[at + 3] >= bytes, 'a name and a value')
end

local function replaced(lines, start, line)
  local all = {}
  for one in string.gmatch(lines, '[^\n]+') do
    all[#all + 1] = string.sub(one, 1, #start) == start and line or one
  end
  return table.concat(all, '\n')
end

local function isKnown(first, name, id)
  for bucket = first, first + generations - 1 do
    local value = call('HGET', KEYS[bucket], name)
    if value then return string.sub(value, 1, bytes) == id end
  end
  return false
end

for place = 0, #KEYS / per - 1 do
  local key, first = KEYS[place * per + 1], place * per + 2
  local start, line, name, value = unpack(list, 4 * place + 1, 4 * place + 4)
  local lines = call('GET', key)
  if lines then
    local isOwn = string.sub(lines, 1, #start) == start
    if isOwn and name ~= '' and not string.find(lines, '\n') then
      call('HSET', KEYS[first], name, value)
      call('DEL', key)
      compact = compact + 1
    else
      local changed = replaced(lines, start, line)
      if changed ~= lines then call('SET', key, changed) end
    end
  elseif name ~= '' and isKnown(first, name, string.sub(value, 1, bytes)) then
    call('HSET', KEYS[first], name, value)
    compact = compact + 1
  end
end
return compact
