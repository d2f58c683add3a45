#!lua
-- Saves orders of a channel, each only if it is still the version it was read as, with its place by date and its parcels.
--
-- KEYS[1]  counter of order ids in this partition
-- KEYS[2]  hash: natural key -> order id
-- KEYS[3]  sorted set of orders by order date
-- KEYS[4]  hash: parcel hash -> order id
-- ARGV[1]  hash tag of the partition; the orders' own keys are built from it
-- ARGV[2]  partition number    ARGV[3]  number of partitions
-- then, for each order, six:
--   natural key, version it was read as (0 = there was none), order date (UTC milliseconds), 1 = deleted,
--   record (JSON), parcels (JSON: {"added": [hash], "removed": [hash]})
--
-- Reply: for each order its id, or 0 when it has been changed in between.
local tag, partition, partitions = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local reply = {}
for at = 4, #ARGV, 6 do
  local natural, expected, date, deleted = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local name = redis.call('HGET', KEYS[2], natural)
  local version = name and redis.call('HGET', tag .. ':o:' .. name, 'v') or '0'
  if version ~= expected then
    reply[#reply + 1] = 0
  else
    if not name then
      name = string.format('%d', redis.call('INCR', KEYS[1]) * partitions + partition)
      redis.call('HSET', KEYS[2], natural, name)
    end
    redis.call('HSET', tag .. ':o:' .. name, 'v', string.format('%d', tonumber(version) + 1), 'd', ARGV[at + 4])
    local member = string.format('%012d', tonumber(name))
    if deleted == '1' then
      redis.call('ZREM', KEYS[3], member)
    else
      redis.call('ZADD', KEYS[3], date, member)
    end
    local parcels = cjson.decode(ARGV[at + 5])
    for _, hash in ipairs(parcels.added) do redis.call('HSET', KEYS[4], hash, name) end
    for _, hash in ipairs(parcels.removed) do redis.call('HDEL', KEYS[4], hash) end
    reply[#reply + 1] = tonumber(name)
  end
end
return reply
