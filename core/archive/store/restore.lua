#!lua
-- Brings shipments of one company back from the archive. The rows that they were read from count no more, in the same step.
--
-- KEYS[1]  what the archive holds of the company (hash, as in remove.lua)
-- KEYS[2]  rows of the archive that do not count (sorted set of `id batch`)
-- KEYS[3]  batches that do not count (sorted set)
-- KEYS[4…] keys that the list refers to by their index in KEYS
-- ARGV[1]  rows in a block    ARGV[2]  shipments with an exact value from which on they stand in a bitmap by rank too
-- ARGV[4]  digits of a member of the indices
-- ARGV[3]  the list (MessagePack, texts and numbers #): # channels, # shipments, then for each channel two:
--   its id, # what has left its rows (hash); its indices by id, ship date and statusUpdatedAt and its row log follow it
-- and for each shipment seventeen and more:
--   id, member of the indices, batch of its row in the archive, # channel (its place among the channels), # the shipment (hash);
--   its notifications (list), stock releases (hash) and told topics (hash) follow it, # block of its row, # rank, its row, # status (its number),
--   # statusUpdatedAt, # ship date (days since 1970), # f = fields, # m = notifications, # r = stock releases,
--   # t = topics, # s = exact values, # n = tracking numbers, f times: field, value, m times: notification, r times: id, release,
--   t times: topic, time,
--   s times: # the shipments with the value (set); their bitmap follows it, n times: # the number (hash: courier -> id), courier
--
-- A tracking number that another shipment has taken meanwhile stays with that one.
--
-- Reply: for each shipment 1 = restored, 0 = the row does not count (any more).
local FIXED, call, summary, per, many = 17, redis.call, KEYS[1], ARGV[1] + 0, ARGV[2] + 0
local list = cmsgpack.unpack(ARGV[3])
local channels, shipments, at = {}, {}, 3
local padded = '%0' .. ARGV[4] + 0 .. 'd'
assert(per >= 1 and many >= 0, 'a number')
-- part: row-log
-- part: exact-values

-- Everything is parsed before the first write: missing or wrongly typed values fail here.
local function taken(count)
  local part = {}
  for place = 1, count do
    assert(type(list[at]) == 'string', 'a text')
    part[place], at = list[at], at + 1
  end
  return part
end

for place = 1, list[1] do
  local id, rows = list[at], list[at + 1] + 0
  assert(#id > 0 and KEYS[rows + 4], 'keys of a channel')
  channels[place] = {id = id, rows = KEYS[rows], ids = KEYS[rows + 1], ships = KEYS[rows + 2], updates = KEYS[rows + 3],
    log = KEYS[rows + 4], gone = true}
  at = at + 2
end
for place = 1, list[2] do
  local id, member, batch, channel, key, block, rank, row, status, updated, shipped, fields, messages, releases, topics, sets, numbers =
    unpack(list, at, at + FIXED - 1)
  assert(id > '' and member > '' and batch + 0 >= 1 and channels[channel] and KEYS[key + 3] and KEYS[block], 'a shipment')
  assert(rank + status + updated + shipped >= 0 and #row == 16 and fields >= 1, 'numbers of a shipment')
  at = at + FIXED
  local shipment = {id = id, member = member, batch = batch, channel = channels[channel], key = key, block = KEYS[block],
    rank = rank, row = row, status = status, updated = updated, shipped = shipped, sets = {}, numbers = {}}
  shipment.fields, shipment.messages, shipment.releases = taken(2 * fields), taken(messages), taken(2 * releases)
  shipment.topics = taken(2 * topics)
  for value = 1, sets do
    assert(KEYS[list[at] + 1], 'keys of an exact value')
    shipment.sets[value], at = list[at], at + 1
  end
  for number = 1, numbers do
    assert(KEYS[list[at]] and #list[at + 1] > 0, 'a tracking number')
    shipment.numbers[number], at = {key = KEYS[list[at]], courier = list[at + 1]}, at + 2
  end
  shipments[place] = shipment
end
assert(at == #list + 1, 'length of the list')

local settled, floor = tonumber(call('HGET', summary, 'batch') or 0), tonumber(call('HGET', summary, 'floor') or 0)
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function isCurrent(shipment)
  return shipment.batch + 0 >= floor and shipment.batch + 0 <= settled and not call('ZSCORE', KEYS[2], shipment.id .. ' ' .. shipment.batch)
    and not call('ZSCORE', KEYS[3], shipment.batch) and call('EXISTS', KEYS[shipment.key]) == 0
end

local function bringBack(shipment)
  local channel, key, rank = shipment.channel, shipment.key, shipment.rank
  local block = math.floor(rank / per)
  call('HSET', KEYS[key], unpack(shipment.fields))
  if #shipment.messages > 0 then call('RPUSH', KEYS[key + 1], unpack(shipment.messages)) end
  if #shipment.releases > 0 then call('HSET', KEYS[key + 2], unpack(shipment.releases)) end
  if #shipment.topics > 0 then call('HSET', KEYS[key + 3], unpack(shipment.topics)) end
  call('SETRANGE', shipment.block, (rank % per) * 16, shipment.row)
  call('ZADD', channel.ids, rank, shipment.member)
  call('ZADD', channel.ships, shipment.shipped, shipment.member)
  call('ZADD', channel.updates, shipment.updated, shipment.member)
  call('HINCRBY', channel.rows, 'gone', -1)
  call('HINCRBY', channel.rows, block, -1)
  call('HINCRBY', summary, 'n:' .. channel.id .. ':' .. shipment.status, -1)
  noteRanks(channel.log, struct.pack('<I4', rank))
  for _, set in ipairs(shipment.sets) do addExact(channel, KEYS[set], KEYS[set + 1], shipment.id, rank) end
  for _, number in ipairs(shipment.numbers) do
    call('HSETNX', number.key, number.courier, shipment.id)
    call('PERSIST', number.key)
  end
  call('ZADD', KEYS[2], now, shipment.id .. ' ' .. shipment.batch)
end

local reply, restored = {}, 0
for place, shipment in ipairs(shipments) do
  reply[place] = isCurrent(shipment) and 1 or 0
  restored = restored + reply[place]
  if reply[place] == 1 then bringBack(shipment) end
end
if restored > 0 then call('HINCRBY', summary, 'seq', 1) end
return reply
