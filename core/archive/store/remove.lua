#!lua
-- Removes shipments of one company that stand in a batch of the archive, and settles the batch: from then on its rows count.
-- A shipment that has changed since it was written there, or beside which something has changed, stays, and its
-- row in the archive does not count.
--
-- KEYS[1]  what the archive holds of the company (hash): `batch` = the last one that is settled, `seq` grows with every move,
--          by channel `n:` = how many of each status, `i:`, `u:`, `s:` = the highest id, statusUpdatedAt and ship date ever moved
-- KEYS[2]  rows of the archive that do not count (sorted set of `id batch`)
-- KEYS[3]  batches that do not count (sorted set): those that were skipped from 2^50 on, in their order: whoever wrote them may yet insert
--          them, however late
-- KEYS[4…] keys that the list refers to by their index in KEYS
-- ARGV[1]  the batch    ARGV[2]  milliseconds for which tracking numbers stay taken: longer than a creation takes
-- ARGV[3]  rows in a block    ARGV[4]  status of a row whose shipment has gone
-- ARGV[5]  the list (MessagePack, texts and numbers #): # channels, # shipments, then for each channel two:
--   its id, # what has left its rows (hash); its indices by id, ship date and statusUpdatedAt and its row log follow it
-- and for each shipment thirteen and more:
--   id, member of the indices, head, digest of what is kept beside it (side-digest.lua), # channel (its place among the channels), # the shipment (hash); its notifications, stock
--   releases, told topics and webhook decisions follow it, # block of its row, # rank, # status (its number),
--   # statusUpdatedAt, # ship date (days since the year 0), # s = exact values, # n = tracking numbers,
--   s times: # the shipments with the value (set); their bitmap follows it, n times: # the number (hash: courier -> id), courier
--
-- Reply: for each shipment 1 = removed, 0 = it stays; an empty list, and nothing done, when the batch came too late.
local FIXED, SKIPPED, call, summary = 13, 2 ^ 50, redis.call, KEYS[1]
local batch, takenMs, per, gone = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, string.char(ARGV[4])
local list, channels, shipments, named, at = cmsgpack.unpack(ARGV[5]), {}, {}, {}, 3
assert(batch >= 1 and takenMs >= 1 and per >= 1, 'a number')
-- part: row-log
-- part: side-digest

-- Everything is parsed before the first write: missing or wrongly typed values fail here.
for place = 1, list[1] do
  local id, rows = list[at], list[at + 1] + 0
  assert(#id > 0 and KEYS[rows + 4], 'keys of a channel')
  channels[place] = {id = id, rows = KEYS[rows], indices = {KEYS[rows + 1], KEYS[rows + 2], KEYS[rows + 3]}, log = KEYS[rows + 4],
    members = {}, ranks = {}, dead = {}, statuses = {}, highest = 0, updated = 0, shipped = 0}
  at = at + 2
end
for place = 1, list[2] do
  local id, member, head, digest, channel, key, block, rank, status, updated, shipped, sets, numbers = unpack(list, at, at + FIXED - 1)
  assert(id > '' and member > '' and head > '' and type(digest) == 'string' and channels[channel] and KEYS[key + 4] and KEYS[block], 'a shipment')
  assert(rank + status + updated + shipped >= 0, 'numbers of a shipment')
  named[id] = not named[id] or error('a shipment is named twice: the row that holds it would not count')
  shipments[place] = {id = id, member = member, head = head, digest = digest, channel = channels[channel], key = key, block = block, rank = rank,
    status = status, updated = updated, shipped = shipped, sets = {}, numbers = {}}
  at = at + FIXED
  for value = 1, sets do
    assert(KEYS[list[at] + 1], 'keys of an exact value')
    shipments[place].sets[value], at = list[at], at + 1
  end
  for number = 1, numbers do
    assert(KEYS[list[at]] and #list[at + 1] > 0, 'a tracking number')
    shipments[place].numbers[number], at = {key = KEYS[list[at]], courier = list[at + 1]}, at + 2
  end
end
assert(at == #list + 1, 'length of the list')
local settled = tonumber(call('HGET', summary, 'batch') or 0)
if batch <= settled or call('ZSCORE', KEYS[3], ARGV[1]) then return {} end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local reply, exact = {}, {}

local function leave(shipment)
  local channel, key, block = shipment.channel, shipment.key, KEYS[shipment.block]
  call('DEL', KEYS[key], KEYS[key + 1], KEYS[key + 2], KEYS[key + 3])
  call('SETRANGE', block, (shipment.rank % per) * 16 + 12, gone)
  channel.members[#channel.members + 1] = shipment.member
  channel.ranks[#channel.ranks + 1] = struct.pack('<I4', shipment.rank)
  channel.dead[shipment.block] = (channel.dead[shipment.block] or 0) + 1
  channel.statuses[shipment.status] = (channel.statuses[shipment.status] or 0) + 1
  channel.highest = math.max(channel.highest, shipment.id)
  channel.updated, channel.shipped = math.max(channel.updated, shipment.updated), math.max(channel.shipped, shipment.shipped)
  for _, set in ipairs(shipment.sets) do
    exact[set] = exact[set] or {}
    table.insert(exact[set], shipment.id)
  end
  for _, number in ipairs(shipment.numbers) do
    local isAlone = call('HLEN', number.key) == 1
    if isAlone and call('HGET', number.key, number.courier) == shipment.id then call('PEXPIRE', number.key, takenMs) end
  end
end

for place, shipment in ipairs(shipments) do
  local key = shipment.key
  local isSame = call('HGET', KEYS[key], 'v') == shipment.head and call('EXISTS', KEYS[key + 4]) == 0
  if isSame and sideDigest(KEYS[key + 1], KEYS[key + 2], KEYS[key + 3]) == shipment.digest then
    leave(shipment)
    reply[place] = 1
  else
    call('ZADD', KEYS[2], now, shipment.id .. ' ' .. ARGV[1])
    reply[place] = 0
  end
end

local function raise(field, value)
  if value > tonumber(call('HGET', summary, field) or -1) then call('HSET', summary, field, string.format('%d', value)) end
end

for _, channel in ipairs(channels) do
  if #channel.members > 0 then
    for _, index in ipairs(channel.indices) do call('ZREM', index, unpack(channel.members)) end
    noteRanks(channel.log, table.concat(channel.ranks))
    call('HINCRBY', channel.rows, 'gone', #channel.members)
    for block, count in pairs(channel.dead) do
      local name = string.match(KEYS[block], '%d+$')
      if call('HINCRBY', channel.rows, name, count) == per then call('SET', KEYS[block], '\0') end
    end
    for status, count in pairs(channel.statuses) do call('HINCRBY', summary, 'n:' .. channel.id .. ':' .. status, count) end
    raise('i:' .. channel.id, channel.highest)
    raise('u:' .. channel.id, channel.updated)
    raise('s:' .. channel.id, channel.shipped)
  end
end
for set, ids in pairs(exact) do
  local held = call('SCARD', KEYS[set])
  if call('SREM', KEYS[set], unpack(ids)) == held then call('DEL', KEYS[set + 1]) end
end
for lost = settled + 1, batch - 1 do call('ZADD', KEYS[3], string.format('%.0f', SKIPPED + lost), string.format('%d', lost)) end
call('HSET', summary, 'batch', ARGV[1])
call('HINCRBY', summary, 'seq', 1)
return reply
