-- Creates shipments, unique by (channel, courier, tracking number), with their indices and a change log entry.
--
-- KEYS[1]  counter of shipment ids in this partition
-- KEYS[2]  change log (stream)
-- ARGV[1]  hash tag of the partition; further keys of the same tag are built from it
-- ARGV[2]  partition number    ARGV[3]  number of partitions
-- then, for each shipment, nine:
--   channel id, courier, tracking number, ship date (days), state, meta, record (all JSON),
--   status, exact values (JSON: field -> value)
--
-- Index members are ids of twelve digits, so that equal scores stand in the order of ids. A shipment whose status no
-- carrier event has changed stands in the indices by statusUpdatedAt with 0.
--
-- Reply: for each shipment its new id, or 0 when it exists already.
local tag, partition, partitions = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local reply = {}
for at = 4, #ARGV, 9 do
  local channel, courier, number, ship = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local state, meta, record, status = ARGV[at + 4], ARGV[at + 5], ARGV[at + 6], ARGV[at + 7]
  local numbers = tag .. ':n:' .. channel .. ':' .. number
  if redis.call('HEXISTS', numbers, courier) == 1 then
    reply[#reply + 1] = 0
  else
    local id = redis.call('INCR', KEYS[1]) * partitions + partition
    local name = string.format('%d', id)
    redis.call('HSET', numbers, courier, name)
    redis.call('HSET', tag .. ':s:' .. name, 'v', '1', 'st', state, 'm', meta, 'c', record)
    local index, member = tag .. ':i:' .. channel .. ':', string.format('%012d', id)
    redis.call('ZADD', index .. 'id', id, member)
    redis.call('ZADD', index .. 'ship', ship, member)
    redis.call('ZADD', index .. 'upd', 0, member)
    redis.call('ZADD', index .. status .. ':id', id, member)
    redis.call('ZADD', index .. status .. ':ship', ship, member)
    redis.call('ZADD', index .. status .. ':upd', 0, member)
    for field, value in pairs(cjson.decode(ARGV[at + 8])) do
      redis.call('SADD', tag .. ':x:' .. channel .. ':' .. field .. ':' .. value, name)
    end
    redis.call('XADD', KEYS[2], '*', 's', name, 'created', meta)
    reply[#reply + 1] = id
  end
end
return reply
