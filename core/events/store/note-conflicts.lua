#!lua
-- Lists number conflicts, each once. Repeating it changes nothing while they are listed.
--
-- KEYS[1]  conflicts (hash: name -> JSON)    KEYS[2]  their names by time (sorted set, milliseconds)
-- ARGV[1]  conflicts that are listed at most; the oldest go
-- then for each conflict three: its name, its time, JSON
--
-- Reply: for each conflict 1 = listed now, 0 = listed before.
local call, limit, reply = redis.call, ARGV[1] + 0, {}
assert(limit >= 1 and #ARGV % 3 == 1, 'a limit or an argument too few')
for at = 3, #ARGV, 3 do assert(tonumber(ARGV[at]), 'a time') end
for at = 2, #ARGV, 3 do
  local isNew = call('HSETNX', KEYS[1], ARGV[at], ARGV[at + 2])
  if isNew == 1 then call('ZADD', KEYS[2], ARGV[at + 1], ARGV[at]) end
  reply[#reply + 1] = isNew
end
local over = call('ZRANGE', KEYS[2], 0, -limit - 1)
for _, name in ipairs(over) do
  call('HDEL', KEYS[1], name)
  call('ZREM', KEYS[2], name)
end
return reply
