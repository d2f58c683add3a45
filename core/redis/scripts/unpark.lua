#!lua flags=allow-oom
-- Forgets parked events that have been applied, and takes them out of the partition's count. Repeating it changes
-- nothing. Runs with full memory too: it only frees memory.
--
-- KEYS[1]     counts of the partition (hash: day -> events set aside on it)
-- KEYS[i+1]   parked events of a reference (hash)
-- ARGV[2i-1]  fact key
-- ARGV[2i]    day (since 1970) on which the event was set aside
--
-- No key is touched after it was emptied: Redis would refuse that while the key's slot migrates.
--
-- Reply: how many were forgotten.
local call, counts, fewer, gone, forgotten = redis.call, KEYS[1], {}, {}, 0
assert(#ARGV == 2 * (#KEYS - 1), 'an argument too few')
for at = 2, #ARGV, 2 do assert(tonumber(ARGV[at]), 'a day') end
for at = 1, #KEYS - 1 do
  local key, field, day = KEYS[at + 1], ARGV[2 * at - 1], ARGV[2 * at]
  gone[key] = gone[key] or {}
  if not gone[key][field] and call('HEXISTS', key, field) == 1 then
    gone[key][field], forgotten = true, forgotten + 1
    fewer[day] = (fewer[day] or 0) + 1
  end
end
local over = {}
for day, number in pairs(fewer) do
  local held = tonumber(call('HGET', counts, day))
  if held and held > number then call('HINCRBY', counts, day, -number)
  elseif held then over[#over + 1] = day end
end
for key, fields in pairs(gone) do
  for field in pairs(fields) do call('HDEL', key, field) end
end
for _, day in ipairs(over) do call('HDEL', counts, day) end
return forgotten
