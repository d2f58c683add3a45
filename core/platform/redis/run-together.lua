-- Several calls of one script as one command (run-together.ts). The script stands instead of the line below, and its keys and
-- arguments are its own.
--
-- KEYS  those of all calls, one call after the other
-- ARGV  for each call: its number of keys, its number of arguments, its arguments
--
-- Reply: the reply of each call.
local step = function(KEYS, ARGV)
-- the step
end
local replies, key, at = {}, 0, 1
while at <= #ARGV do
  local keys, args = {}, {}
  local ownKeys, ownArgs = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  for index = 1, ownKeys do keys[index] = KEYS[key + index] end
  for index = 1, ownArgs do args[index] = ARGV[at + 1 + index] end
  key, at = key + ownKeys, at + 2 + ownArgs
  replies[#replies + 1] = step(keys, args)
end
return replies
