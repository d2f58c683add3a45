#!lua
-- Opens a transmission for labels that none has yet. Run by the holder of the confirm lock.
--
-- KEYS[1]  counter of transmissions in this partition
-- KEYS[2]  hash of the transmission's slip
-- KEYS[3…] hashes of the labels that the carrier has confirmed
-- ARGV[1]  partition number    ARGV[2]  number of partitions
-- ARGV[3]  milliseconds that a transmission is kept
--
-- Reply: {transmission id or 0, then for each label 1 = in this transmission, 0 = it was in another one already}
local reply, free = { 0 }, {}
for at = 3, #KEYS do
  local open = redis.call('HEXISTS', KEYS[at], 'tx') == 0
  reply[#reply + 1] = open and 1 or 0
  if open then free[#free + 1] = KEYS[at] end
end
if #free == 0 then return reply end
local id = redis.call('INCR', KEYS[1]) * tonumber(ARGV[2]) + tonumber(ARGV[1])
for _, key in ipairs(free) do redis.call('HSET', key, 'tx', string.format('%d', id)) end
redis.call('HSET', KEYS[2], 'id', string.format('%d', id))
redis.call('PEXPIRE', KEYS[2], ARGV[3])
reply[1] = id
return reply
