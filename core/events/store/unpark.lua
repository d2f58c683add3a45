#!lua flags=allow-oom
-- Forgets parked events that have been applied, and takes them out of the partition's count. Repeating it changes
-- nothing. Runs with full memory too: it only frees memory.
--
-- KEYS[1]    counts of the partition (hash: day -> parked events that were sent on it last)
-- KEYS[i+1]  parked events of a reference (hash)
-- ARGV[i]    fact key
--
-- Reply: how many were forgotten.
local call, gone, forgotten = redis.call, {}, 0
assert(#ARGV == #KEYS - 1, 'an argument too few')
-- part: parked-counts

for at = 1, #ARGV do
  local key, field = KEYS[at + 1], ARGV[at]
  gone[key] = gone[key] or {}
  local value = not gone[key][field] and call('HGET', key, field)
  if value then
    gone[key][field], forgotten = true, forgotten + 1
    countOut(sentAt(value))
  end
end
for key, fields in pairs(gone) do
  for field in pairs(fields) do call('HDEL', key, field) end
end
keepCounts(KEYS[1])
return forgotten
