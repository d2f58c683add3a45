#!lua
-- Assigns an id to a request before the carrier is called: the same one until its outcome is known.
--
-- KEYS[1]  string: id of the request
-- KEYS[2]  counter of such ids in this partition
-- ARGV[1]  partition number    ARGV[2]  stride of ids
-- ARGV[3]  milliseconds that an id without an outcome is kept
--
-- Reply: the id.
local partition, stride, keptMs = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if not partition or not stride or not keptMs then
  return redis.error_reply('ERR claim-id: wrong arguments')
end
local id = redis.call('GET', KEYS[1])
if not id then
  id = string.format('%d', redis.call('INCR', KEYS[2]) * stride + partition)
  redis.call('SET', KEYS[1], id, 'PX', ARGV[3])
end
return tonumber(id)
