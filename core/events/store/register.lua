#!lua
-- Makes shipments findable by references. Repeating it changes nothing but what was corrected of a shipment.
--
-- KEYS     for each reference: its candidates (string): one a line, `[id,…,company,ship day]`; then a bucket of each generation of
--          compact references (hash), the newest first
-- ARGV[1]  shipments of one company that a reference finds    ARGV[2]  shipments that it finds in all    ARGV[3]  generations
-- then for each reference two: start of the candidate line that identifies the shipment, the rest of the line
-- then for each reference its name in a bucket
--
-- A compact reference belongs to an archived shipment alone: with another one it becomes a line. Its value begins with the
-- shipment's id in 5 bytes and is told in the line as hexadecimal text.
--
-- Past a limit the latest shipments of each company stay, and the latest of every company go before the second of any, so
-- that what stays does not depend on the order of registration.
--
-- Reply: how many lines were left out or removed at a limit.
local call, perCompany, inAll, per, leftOut = redis.call, ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 1, 0
local count = #KEYS / per
assert(#KEYS % per == 0 and #ARGV == 3 + 3 * count and perCompany >= 1 and inAll >= 1, 'half a line or a limit')
for at = 4, 2 + 2 * count, 2 do assert(string.match(ARGV[at], '^%[%d+,$'), 'start of a line') end

-- The lines that stay, in the order of their ids.
local function keep(lines)
  local all, ranks = {}, {}
  for line in string.gmatch(lines, '[^\n]+') do
    local company = string.match(line, ',(%d+),%d+%]$') or ''
    all[#all + 1] = {line = line, id = tonumber(string.match(line, '^%[(%d+)')), company = company}
  end
  table.sort(all, function(one, other) return one.id > other.id end)
  local kept = {}
  for _, one in ipairs(all) do
    one.rank = (ranks[one.company] or 0) + 1
    ranks[one.company] = one.rank
    if one.rank <= perCompany then kept[#kept + 1] = one end
  end
  table.sort(kept, function(one, other)
    if one.rank ~= other.rank then return one.rank < other.rank end
    return one.id > other.id
  end)
  local texts = {}
  for at = 1, math.min(inAll, #kept) do texts[at] = kept[at] end
  table.sort(texts, function(one, other) return one.id < other.id end)
  leftOut = leftOut + #all - #texts
  for at, one in ipairs(texts) do texts[at] = one.line end
  return table.concat(texts, '\n')
end

local function hex(value)
  return (string.gsub(value, '.', function(byte) return string.format('%02x', string.byte(byte)) end))
end

-- What stood in a bucket, as a line, and the bucket.
local function compactLine(first, name)
  for bucket = first, first + per - 2 do
    local value = call('HGET', KEYS[bucket], name)
    if value then
      local id = string.format('%.0f', struct.unpack('<I4', value) + string.byte(value, 5) * 4294967296)
      return '[' .. id .. ',0,0,null,"' .. hex(value) .. '",' .. id .. ',0]', KEYS[bucket]
    end
  end
end

-- What a line says of a shipment may have been corrected since; one that was archived keeps its line.
local function withLine(lines, start, line)
  local texts = {}
  for one in string.gmatch(lines, '[^\n]+') do
    local isOwn = string.sub(one, 1, #start) == start and not string.find(one, ',"%x+",%d+,%d+%]$')
    texts[#texts + 1] = isOwn and line or one
  end
  return table.concat(texts, '\n')
end

for place = 1, count do
  local key, start = KEYS[(place - 1) * per + 1], ARGV[2 * place + 2]
  local line = start .. ARGV[2 * place + 3]
  local lines = call('GET', key)
  if not lines then
    local name = ARGV[3 + 2 * count + place]
    local archived, bucket = compactLine((place - 1) * per + 2, name)
    if not archived then call('SET', key, line)
    elseif string.sub(archived, 1, #start) ~= start then
      call('SET', key, archived .. '\n' .. line)
      call('HDEL', bucket, name)
    end
  elseif string.find('\n' .. lines, '\n' .. start, 1, true) then
    local corrected = withLine(lines, start, line)
    if corrected ~= lines then call('SET', key, corrected) end
  else
    local _, breaks = string.gsub(lines, '\n', '')
    if breaks + 1 < perCompany then
      call('APPEND', key, '\n' .. line)
    else
      local kept = keep(lines .. '\n' .. line)
      if kept ~= lines then call('SET', key, kept) end
    end
  end
end
return leftOut
