-- Acknowledges entries of a log and keeps what failed of them for its next try, in one step. What another process has
-- acknowledged before is not kept twice.
--
-- KEYS[1]  log (stream)
-- KEYS[2]  what waits for its next try in the group (sorted set by the time of the entry, milliseconds)
-- ARGV[1]  group    ARGV[2]  number of entries
-- then the ids of the entries, then for each failure two: the id of its entry, its text
local acknowledged, last = {}, 2 + tonumber(ARGV[2])
for at = 3, last do
  acknowledged[ARGV[at]] = redis.call('XACK', KEYS[1], ARGV[1], ARGV[at]) == 1
end
for at = last + 1, #ARGV, 2 do
  if acknowledged[ARGV[at]] then
    redis.call('ZADD', KEYS[2], string.match(ARGV[at], '^%d+'), ARGV[at + 1])
  end
end
return 1
