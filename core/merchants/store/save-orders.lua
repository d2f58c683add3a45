#!lua
-- Saves orders of a channel, each only if it is still the version it was read as, with its index by date and its parcels.
--
-- KEYS[1]  hash: natural key -> order id
-- KEYS[2]  sorted set of orders by order date
-- KEYS[3]  hash: parcel hash -> order id
-- KEYS[i+3]  order (hash)
-- ARGV[1]  digits of a member of KEYS[2]
-- then for each order seven:
--   natural key (0.1.0 wrote some under another one), its id (for a new one, an id reserved for it), version it was read as (0 = there was none), order
--   date (UTC milliseconds), 1 = deleted, record (JSON), parcels (JSON: {"added": [hash], "removed": [hash]})
--
-- Reply: for each order its id, or 0 when it has been changed in between.
local call, orders, reply, saved, padded = redis.call, {}, {}, {}, '%0' .. ARGV[1] + 0 .. 'd'
assert(#ARGV == 7 * (#KEYS - 3) + 1, 'seven for each order')
for index = 1, #KEYS - 3 do
  local at = 7 * index - 5
  local natural, name, version, date, deleted, record, parcels = unpack(ARGV, at, at + 6)
  local change = cjson.decode(parcels)
  for _, list in ipairs({change.added, change.removed}) do
    for _, hash in ipairs(list) do assert(type(hash) == 'string', 'hash of a parcel') end
  end
  orders[index] = {key = KEYS[3 + index], natural = natural, name = name, id = name + 0, version = version,
    next = string.format('%d', version + 1), date = date, isDeleted = deleted == '1', record = record,
    added = change.added, removed = change.removed, member = string.format(padded, name)}
  assert(tonumber(date) and #change.added + #change.removed >= 0, 'date or parcels')
end
for index, order in ipairs(orders) do
  local known = call('HGET', KEYS[1], order.natural)
  local isSame = (not known or known == order.name) and call('HGET', order.key, 'v') == order.version
  if isSame or (not known and order.version == '0') then
    if not known then call('HSET', KEYS[1], order.natural, order.name) end
    call('HSET', order.key, 'v', order.next, 'd', order.record)
    if not order.isDeleted then call('ZADD', KEYS[2], order.date, order.member) end
    for _, hash in ipairs(order.added) do call('HSET', KEYS[3], hash, order.name) end
    saved[#saved + 1] = order
    reply[index] = order.id
  else
    reply[index] = 0
  end
end
-- Deletions are looked up first: no key is touched after it was emptied, since Redis would refuse that while its slot migrates.
local members, hashes = {}, {}
for _, order in ipairs(saved) do
  if order.isDeleted and call('ZSCORE', KEYS[2], order.member) then members[#members + 1] = order.member end
  for _, hash in ipairs(order.removed) do
    if call('HGET', KEYS[3], hash) == order.name then hashes[hash] = true end
  end
end
for _, member in ipairs(members) do call('ZREM', KEYS[2], member) end
for hash in pairs(hashes) do call('HDEL', KEYS[3], hash) end
return reply
