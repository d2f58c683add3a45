#!lua
-- Creates shipments, unique by (channel, courier, tracking number), with their indices and a change log entry.
--
-- KEYS[1]  counter of shipment ids in this partition
-- KEYS[2]  change log (stream)
-- KEYS[3]  counts of the log (hash): `logged` grows by the creations
-- ARGV[1]  hash tag of the partition; further keys of the same tag are built from it
-- ARGV[2]  partition number    ARGV[3]  number of partitions
-- ARGV[4]  rows in a block of columns    ARGV[5]  days from the year 0 to 1970    ARGV[6]  status names, by their numbers
-- ARGV[7]  shipments with an exact value from which on they stand in a bitmap by rank too
-- then, for each shipment, nine:
--   channel id, courier, tracking number, ship date (days), state and record (packed), meta (JSON, for the change log),
--   status, exact values (JSON: field -> value)
--
-- Index members are ids of twelve digits, so that equal scores stand in the order of ids. A shipment whose status no
-- carrier event has changed stands in the indices by statusUpdatedAt with 0.
--
-- Reply: for each shipment its new id, or 0 when it exists already.
local tag, partition, partitions = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local per, shift, many = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[7])
local numbersOf, count = {}, 0
for status in string.gmatch(ARGV[6], '%S+') do
  numbersOf[status], count = count, count + 1
end
local reply, changed, names, metas = {}, {}, {}, {}

-- A row as columns.ts describes it, at the rank that the shipment is about to have in the index by id.
local function appendRow(channel, id, ship, status)
  local rank = redis.call('ZCARD', tag .. ':i:' .. channel .. ':id')
  local block = math.floor(rank / per)
  local high = math.floor(id / 4294967296)
  local row = struct.pack('<I4I4I4I4', id % 4294967296, 0, ship + shift, high * 256 + numbersOf[status])
  redis.call('SETRANGE', tag .. ':b:' .. channel .. ':' .. block, (rank % per) * 16, row)
  changed[channel] = (changed[channel] or '') .. struct.pack('<I4', rank)
  return rank
end

local function addExact(channel, value, name, rank)
  local set, bits = tag .. ':x:' .. channel .. ':' .. value, tag .. ':xb:' .. channel .. ':' .. value
  redis.call('SADD', set, name)
  local held = redis.call('SCARD', set)
  if held > many then redis.call('SETBIT', bits, rank, 1) end
  if held ~= many then return end
  for _, other in ipairs(redis.call('SMEMBERS', set)) do
    local member = string.format('%012d', other)
    redis.call('SETBIT', bits, redis.call('ZRANK', tag .. ':i:' .. channel .. ':id', member), 1)
  end
end

for at = 8, #ARGV, 9 do
  local channel, courier, number, ship = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local state, record, meta, status = ARGV[at + 4], ARGV[at + 5], ARGV[at + 6], ARGV[at + 7]
  local numbers = tag .. ':n:' .. channel .. ':' .. number
  if redis.call('HEXISTS', numbers, courier) == 1 then
    reply[#reply + 1] = 0
  else
    local id = redis.call('INCR', KEYS[1]) * partitions + partition
    local name = string.format('%d', id)
    redis.call('HSET', numbers, courier, name)
    local index, member = tag .. ':i:' .. channel .. ':', string.format('%012d', id)
    local rank = appendRow(channel, id, ship, status)
    redis.call('HSET', tag .. ':s:' .. name, 'v', string.format('1 %d 0 0', rank), 'st', state, 'c', record)
    redis.call('ZADD', index .. 'id', id, member)
    redis.call('ZADD', index .. 'ship', ship, member)
    redis.call('ZADD', index .. 'upd', 0, member)
    for field, value in pairs(cjson.decode(ARGV[at + 8])) do
      addExact(channel, field .. ':' .. value, name, rank)
    end
    names[#names + 1], metas[#metas + 1] = name, meta
    reply[#reply + 1] = id
  end
end

if #names > 0 then
  redis.call('HINCRBY', KEYS[3], 'logged', #names)
  redis.call('XADD', KEYS[2], '*', 's', table.concat(names, ' '), 'created', table.concat(metas, '\n'))
end
-- Tells the processes that keep rows (read-columns.ts) which have changed: ranks of 4 bytes, the latest last, after 8 bytes
-- of how many have gone. 16,382 of them stay at most, 8,192 at least.
for channel, ranks in pairs(changed) do
  local log = tag .. ':rl:' .. channel
  local length = redis.call('APPEND', log, ranks)
  if length == #ranks then redis.call('SET', log, struct.pack('<d', 0) .. ranks) end
  if length > 65536 then
    local gone = struct.unpack('<d', redis.call('GETRANGE', log, 0, 7)) + (length - 32776) / 4
    redis.call('SET', log, struct.pack('<d', gone) .. redis.call('GETRANGE', log, -32768, -1))
  end
end
return reply
