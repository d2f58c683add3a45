#!lua flags=allow-oom
-- Forgets the counts of hours that have been written elsewhere, unless one has grown since. Runs with a full memory too:
-- it only frees.
--
-- KEYS[1]  hours (set)
-- KEYS[2…] counts of one hour each (hash)
-- ARGV     for each of them: the hour, the sum of its counts when it was written
--
-- Reply: how many hours were forgotten.
local forgotten = 0
for at = 2, #KEYS do
  local sum = 0
  for _, value in ipairs(redis.call('HVALS', KEYS[at])) do sum = sum + tonumber(value) end
  if sum == tonumber(ARGV[at * 2 - 2]) then
    redis.call('DEL', KEYS[at])
    redis.call('SREM', KEYS[1], ARGV[at * 2 - 3])
    forgotten = forgotten + 1
  end
end
return forgotten
