#!lua flags=no-writes
-- Reads the deliveries at the heads of queues.
--
-- KEYS     for each endpoint two: its first attempts (list), its retries (sorted set)
-- ARGV[1]  deliveries, at most, over all endpoints
--
-- Reply: for each endpoint two lists: first attempts, retries.
local reply, left = {}, assert(tonumber(ARGV[1]), 'malformed arguments')
for at = 1, #KEYS, 2 do
  local firsts = left > 0 and redis.call('LRANGE', KEYS[at], 0, left - 1) or {}
  left = left - #firsts
  local retries = left > 0 and redis.call('ZRANGE', KEYS[at + 1], 0, left - 1) or {}
  left = left - #retries
  reply[#reply + 1], reply[#reply + 2] = firsts, retries
end
return reply
