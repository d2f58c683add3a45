#!lua flags=allow-oom
-- Deletes parked events whose time is over, and takes them out of the partition's count. Repeating it changes nothing. Runs
-- with full memory too: it only frees memory.
--
-- KEYS[1]    counts of the partition (hash: day -> parked events that were sent on it last)
-- KEYS[2]    due (sorted set): hashes of parked events by how long the first of theirs is kept at most, or before that
-- KEYS[i+2]  hashes of parked events that are due
-- ARGV[1]    until when events count, milliseconds
-- ARGV[2]    milliseconds a parked event lives
-- ARGV[3]    milliseconds it is kept at most, for the next time its hash is due
--
-- Reply: how many were deleted.
local call, due, now, lifeMs, keptMs, deleted = redis.call, KEYS[2], ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, 0
-- part: parked-counts

local gone, empty = {}, {}
for at = 3, #KEYS do
  local key, fields, earliest = KEYS[at], call('HGETALL', KEYS[at]), nil
  gone[key] = {}
  for index = 1, #fields, 2 do
    local sent = sentAt(fields[index + 1])
    if now - sent >= lifeMs then
      countOut(sent)
      gone[key][#gone[key] + 1], deleted = fields[index], deleted + 1
    elseif not earliest or sent < earliest then
      earliest = sent
    end
  end
  if earliest then call('ZADD', due, earliest + keptMs, key) else empty[#empty + 1] = key end
end
for key, fields in pairs(gone) do
  for _, field in ipairs(fields) do call('HDEL', key, field) end
end
keepCounts(KEYS[1])
for _, key in ipairs(empty) do call('ZREM', due, key) end
return deleted
