#!lua
-- Makes shipments findable by references. Repeating it changes nothing.
--
-- KEYS[i]     reference (string): one candidate a line, `[id,…,company,ship day]`
-- ARGV[1]     shipments of one company that a reference finds    ARGV[2]  shipments that it finds in all
-- ARGV[2i+1]  start of the candidate line that identifies the shipment
-- ARGV[2i+2]  the rest of the line
--
-- Past a limit the latest shipments of each company stay, and the latest of every company go before the second of any, so
-- that what stays does not depend on the order of registration.
--
-- Reply: how many lines were left out or removed at a limit.
local call, perCompany, inAll, leftOut = redis.call, ARGV[1] + 0, ARGV[2] + 0, 0
assert(#ARGV == 2 + 2 * #KEYS and perCompany >= 1 and inAll >= 1, 'half a line or a limit')
for at = 3, #ARGV, 2 do assert(string.match(ARGV[at], '^%[%d+,$'), 'start of a line') end

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

for at = 1, #KEYS do
  local start = ARGV[2 * at + 1]
  local line = start .. ARGV[2 * at + 2]
  local lines = call('GET', KEYS[at])
  if not lines then
    call('SET', KEYS[at], line)
  elseif not string.find('\n' .. lines, '\n' .. start, 1, true) then
    local _, breaks = string.gsub(lines, '\n', '')
    if breaks + 1 < perCompany then
      call('APPEND', KEYS[at], '\n' .. line)
    else
      local kept = keep(lines .. '\n' .. line)
      if kept ~= lines then call('SET', KEYS[at], kept) end
    end
  end
end
return leftOut
