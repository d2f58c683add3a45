#!lua flags=allow-oom
-- Forgets parked events that have been applied, and takes them out of the partition's count. Repeating it changes
-- nothing. Runs with a full memory too: it only frees.
--
-- KEYS[1]     counts of the partition (hash: day -> events set aside on it)
-- KEYS[i+1]   parked events of a reference (hash)
-- ARGV[2i-1]  fact key
-- ARGV[2i]    day (since 1970) on which the event was set aside
--
-- Reply: how many were forgotten.
local counts, forgotten = KEYS[1], 0
for at = 1, #KEYS - 1 do
  if redis.call('HDEL', KEYS[at + 1], ARGV[2 * at - 1]) == 1 then
    forgotten = forgotten + 1
    local day = ARGV[2 * at]
    if redis.call('HEXISTS', counts, day) == 1 and redis.call('HINCRBY', counts, day, -1) <= 0 then
      redis.call('HDEL', counts, day)
    end
  end
end
return forgotten
