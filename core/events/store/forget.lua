#!lua
-- Removes shipments from references that found them. Repeating it changes nothing.
--
-- KEYS     for each reference: its candidates (string, a line each, as in register.lua), then a bucket of each generation (hash)
-- ARGV[1]  generations
-- then for each reference three: start of the line that identifies the shipment, its name in a bucket, the shipment's id as values begin with it
--
-- Reply: how many references found their shipment until then.
local call, generations, forgotten = redis.call, ARGV[1] + 0, 0
local per = generations + 1
assert(generations >= 0 and #KEYS > 0 and #KEYS % per == 0 and #ARGV == 1 + 3 * #KEYS / per, 'a key or an argument too few')
for at = 2, #ARGV, 3 do
  assert(string.match(ARGV[at], '^%[%d+,$') and #ARGV[at + 1] > 0 and #ARGV[at + 2] >= 5, 'a shipment')
end

for place = 0, #KEYS / per - 1 do
  local key, start, name, id = KEYS[place * per + 1], ARGV[3 * place + 2], ARGV[3 * place + 3], ARGV[3 * place + 4]
  local lines, kept, found = call('GET', key), {}, false
  for line in string.gmatch(lines or '', '[^\n]+') do
    if string.sub(line, 1, #start) == start then found = true else kept[#kept + 1] = line end
  end
  if found and #kept == 0 then call('DEL', key)
  elseif found then call('SET', key, table.concat(kept, '\n')) end
  for bucket = place * per + 2, (place + 1) * per do
    local value = call('HGET', KEYS[bucket], name)
    if value and string.sub(value, 1, #id) == id then
      call('HDEL', KEYS[bucket], name)
      found = true
    end
  end
  if found then forgotten = forgotten + 1 end
end
return forgotten
