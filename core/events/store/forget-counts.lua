#!lua flags=allow-oom
-- Forgets the counts of hours that have been written elsewhere, unless one has grown since. Runs with full memory too:
-- it only frees memory.
--
-- KEYS[1]  hours (set)
-- KEYS[2…] counts of one hour each (hash)
-- ARGV     for each of them: the hour, the sum of its counts when it was written
--
-- Reply: how many hours were forgotten.
assert(#ARGV == 2 * (#KEYS - 1), 'an argument too few')
local forgotten = {}
for at = 2, #KEYS do
  local sum, hour = ARGV[2 * at - 2] + 0, ARGV[2 * at - 3]
  for _, value in ipairs(redis.call('HVALS', KEYS[at])) do sum = sum - value end
  if sum == 0 then
    local isListed = redis.call('SISMEMBER', KEYS[1], hour) == 1
    forgotten[#forgotten + 1] = {key = KEYS[at], hour = isListed and hour}
  end
end
-- The set vanishes with its last hour and is not touched after that: Redis would refuse that while the key's slot migrates.
for _, one in ipairs(forgotten) do
  redis.call('DEL', one.key)
  if one.hour then redis.call('SREM', KEYS[1], one.hour) end
end
return #forgotten
