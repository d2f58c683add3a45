#!lua
-- Creates shipments, unique by (channel, courier, matching form of the tracking number), with their indices and a change log entry.
--
-- KEYS[1]  counter of shipment ids in this partition
-- KEYS[2]  change log (stream)
-- KEYS[3]  counts of the log (hash): `logged` grows by the creations
-- KEYS[4…] the new shipments (hashes), in the order of the list, under the ids that ARGV[5] gives them; then, in any order,
--          the keys that the list refers to by their index in KEYS
-- ARGV[1]  partition number    ARGV[2]  stride of ids    ARGV[3]  rows in a block of columns
-- ARGV[4]  shipments with an exact value from which on they stand in a bitmap by rank too
-- ARGV[5]  the number before those of the new shipments, what the counter says at most; the first has the next number, and so on.
--          An id is its number times the stride, plus the partition
-- ARGV[7]  digits of an index member
-- ARGV[6]  the list (MessagePack, texts and numbers #): # channels, # shipments, then for each channel two:
--   # its row log (string); its indices by id, ship date and statusUpdatedAt (sorted sets), two blocks of rows and what has
--   left them (hash, absent where nothing ever has) follow it
--   # the number of the first of these blocks
-- and for each shipment ten and more:
--   # channel (its index among the channels), # its tracking number (hash: courier -> id), # the same as it was given, which
--   0.1.0 wrote, courier, # ship date (days since the year 0), # the same since 1970, state and record (packed), meta (JSON, for the change log), # status (its number),
--   # e = exact values, e times: # the shipments with the value (set), their bitmap follows it
--
-- Index members are ids of ARGV[7] digits, so that equal scores stand in the order of ids. A shipment whose status no
-- courier event has changed stands in the indices by statusUpdatedAt with 0. Rows stand in the order of creation (columns.ts):
-- ids only ever grow. The rank of a row is that in the index by id; where shipments may leave that index it is their score in it
-- (number-rows.lua). Numbers of shipments that exist already are skipped.
--
-- Reply: for each shipment its new id, or the id of the one that exists already, negative. When numbers or blocks are not the next ones, nothing
-- is done, and the reply is -1, what the counter says, and for each channel how many rows it has.
local call, pack, format = redis.call, struct.pack, string.format
local partition, stride, per, digits = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, ARGV[7] + 0
local many, before, list = ARGV[4] + 0, ARGV[5] + 0, cmsgpack.unpack(ARGV[6])
local padded = '%0' .. digits .. 'd'
local channelCount, count = list[1] + 0, list[2] + 0
local channels, shipments = {}, {}
assert(partition >= 0 and partition < stride and digits >= 1 and per >= 1 and per % 1 == 0 and many >= 0, 'a number')

-- part: row-log

-- Everything is parsed before the first write: missing or wrongly typed values fail here.
local at = 3
for index = 1, channelCount do
  local log, base = list[at], list[at + 1] + 0
  assert(KEYS[log] and KEYS[log + 6], 'keys of a channel')
  channels[index] = {log = KEYS[log], ids = KEYS[log + 1], ships = KEYS[log + 2], updates = KEYS[log + 3],
    blocks = {[base] = KEYS[log + 4], [base + 1] = KEYS[log + 5]}, rows = KEYS[log + 6], base = base, created = 0, ranks = {}}
  at = at + 2
end
for index = 1, count do
  local channel, number, given, courier, ship, day, state, record, meta, status, exact = unpack(list, at, at + 10)
  for _, text in ipairs({courier, state, record, meta}) do assert(type(text) == 'string', 'a text') end
  assert(day + 0 == day, 'a shipment')
  local sets = {}
  for value = 1, exact do
    local set = list[at + 10 + value]
    assert(KEYS[set] and KEYS[set + 1], 'keys of an exact value')
    sets[value] = set
  end
  local id = (before + index) * stride + partition
  shipments[index] = {key = KEYS[3 + index], id = id, channel = channels[channel], number = KEYS[number],
    given = KEYS[given], courier = courier, day = day, state = state, record = record, meta = meta, sets = sets,
    row = pack('<I4I4I4I4', id % 4294967296, 0, ship, math.floor(id / 4294967296) * 256 + status)}
  assert(shipments[index].channel and KEYS[number] and KEYS[given] and KEYS[3 + index], 'keys of a shipment')
  channels[channel].created = channels[channel].created + 1
  at = at + 11 + exact
end
assert(at == #list + 1, 'length of the list')

local counter = tonumber(call('GET', KEYS[1]) or 0)
local isNext, standing = before >= counter, {-1, counter}
for index, channel in ipairs(channels) do
  channel.gone = tonumber(call('HGET', channel.rows, 'gone') or nil)
  channel.rank = call('ZCARD', channel.ids) + (channel.gone or 0)
  standing[2 + index] = channel.rank
  local last = math.floor((channel.rank + math.max(channel.created, 1) - 1) / per)
  isNext = isNext and math.floor(channel.rank / per) >= channel.base and last <= channel.base + 1
end
if not isNext then return standing end

-- part: exact-values

local reply, names, metas = {}, {}, {}
call('SET', KEYS[1], format('%d', before + count))
for index, shipment in ipairs(shipments) do
  local id, channel = shipment.id, shipment.channel
  local name, member, rank = format('%d', id), format(padded, id), channel.rank
  local taken = shipment.given ~= shipment.number and call('HGET', shipment.given, shipment.courier)
  if taken or call('HSETNX', shipment.number, shipment.courier, name) == 0 then
    reply[index] = -(taken or call('HGET', shipment.number, shipment.courier))
  else
    -- It may hold the number of another courier's shipment that was archived a moment ago, and go with it (remove.lua).
    call('PERSIST', shipment.number)
    call('SETRANGE', channel.blocks[math.floor(rank / per)], (rank % per) * 16, shipment.row)
    channel.rank, channel.ranks[#channel.ranks + 1] = rank + 1, pack('<I4', rank)
    call('HSET', shipment.key, 'v', format('1 %d 0 0', rank), 'st', shipment.state, 'c', shipment.record)
    call('ZADD', channel.ids, channel.gone and rank or id, member)
    call('ZADD', channel.ships, shipment.day, member)
    call('ZADD', channel.updates, 0, member)
    for _, set in ipairs(shipment.sets) do addExact(channel, KEYS[set], KEYS[set + 1], name, rank) end
    names[#names + 1], metas[#metas + 1] = name, shipment.meta
    reply[index] = id
  end
end
if #names > 0 then
  call('HINCRBY', KEYS[3], 'logged', #names)
  call('XADD', KEYS[2], '*', 's', table.concat(names, ' '), 'created', table.concat(metas, '\n'))
end
for _, channel in ipairs(channels) do
  if #channel.ranks > 0 then noteRanks(channel.log, table.concat(channel.ranks)) end
end
return reply
