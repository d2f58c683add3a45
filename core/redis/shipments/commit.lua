#!lua
-- Commits new states of shipments: compares versions and sets; holds no rules.
--
-- KEYS[1]  change log (stream)
-- KEYS[2]  ledger (hash): `applied` and `released` grow as each shipment says
-- KEYS[3]  version of the configuration that facts must have been mapped with at least (string)
-- KEYS[4]  unmapped codes (set of `courier:code`)
-- KEYS[5]  counts of the log (hash): `logged` grows by the changes
-- KEYS[6…] in any order, the keys that the list refers to by their index in KEYS
-- ARGV[1]  the service clock, seconds since 1970
-- ARGV[2]  shipments of one company that may share a statusUpdatedAt
-- ARGV[3]  version of the configuration that the facts were mapped with
-- ARGV[4]  unmapped codes a partition keeps; events of further ones are counted in the ledger as `untold`
-- ARGV[5]  first second of the hour that no stamp may stand in    ARGV[6]  the second it ends with; both 0 = none
-- ARGV[7]  the shipments (MessagePack, texts and numbers #), each a list of:
--   id, member of the indices, expected head, new head without its end, statusUpdatedAt so far (the end of the head), new
--   state (packed), # shipment (hash), # clock of its company (hash), # row log of its channel (string; its index by
--   statusUpdatedAt, a sorted set, follows), # block of its row (string), # rank, # where in the block the change begins
--   (statusUpdatedAt when stamped, else the status), # ship date (days since the year 0), # new status (its number), # stamp
--   (1 when the pair changed), # row (1 when its row changes; 0 needs no block), # changes, # bytes of them, # facts
--   applied, # facts released from the set-aside, and three lists: of fields and values to be written in turn, of fields
--   that go, and of codes whose unmapped events became more or fewer, each a list of:
--     `courier:code`, description, first and last time seen (milliseconds), # its counts (hash; its shipments, a sorted set
--     by id, follow), # events more or fewer, # 1 when some are left in the shipment
-- ARGV[8]  the changes of all of them, two lines of JSON each
--
-- Texts go on as they came: Redis hashes every byte of a text that a script makes, and writes a number with 17 digits.
-- Index members are ids of twelve digits, and rows stand at the rank in the index by id, as in create.lua (columns.ts).
-- All changes of a call stand in one entry of the log.
-- Reply: for each shipment its statusUpdatedAt, 0 when it was not stamped, -1 when its version has moved on
-- (nothing done for it); an empty list, and nothing done, when the facts were mapped with an older configuration.
local TEXTS, NUMBERS, ITEM, CODE, TOGETHER = 6, 20, 23, 7, 1000
local now, share, version, codesLimit = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0
local skipFrom, skipTo, shipments, texts = ARGV[5] + 0, ARGV[6] + 0, cmsgpack.unpack(ARGV[7]), ARGV[8]
local call, pack, unpack = redis.call, struct.pack, unpack
-- part: row-log
-- part: company-clock
-- part: unmapped-codes

-- Everything is checked before the first write: missing or wrongly typed values fail here. A text compares with texts alone.
local textBytes, sum, areTexts = 0, 0, true
for _, item in ipairs(shipments) do
  for index = 1, TEXTS do areTexts = areTexts and item[index] >= '' end
  for index = TEXTS + 1, NUMBERS do sum = sum + item[index] end
  local shipment, clock, log, block, _, offset, _, _, _, isRow, changes, bytes, _, _, fields, drops, codes =
    unpack(item, TEXTS + 1, ITEM)
  assert(KEYS[shipment] and KEYS[clock] and KEYS[log + 1], 'keys of a shipment')
  assert(isRow == 0 or (KEYS[block] and offset + 0 >= 0), 'row of a shipment')
  assert(changes >= 0 and 2 * changes <= bytes and #fields % 2 == 0 and #item == ITEM, 'a shipment')
  assert(#fields <= TOGETHER and #drops <= TOGETHER, 'too many fields')
  for index = 1, #fields do areTexts = areTexts and fields[index] >= '' end
  for index = 1, #drops do areTexts = areTexts and drops[index] >= '' end
  for _, code in ipairs(codes) do
    local name, description, first, last, counts, events, isLeft = unpack(code)
    areTexts, sum = areTexts and name >= '' and description >= '', sum + first + last + events + isLeft
    assert(KEYS[counts + 1] and #code == CODE, 'a code')
  end
  textBytes = textBytes + bytes
end
assert(textBytes == #texts, 'length of the changes')

local reply, applied, released = {}, 0, 0
if (tonumber(call('GET', KEYS[3])) or 0) > version then return reply end

-- By channel the ranks of changed rows, and what goes into the index by statusUpdatedAt: written once, at the end.
local changed, stamped = {}, {}

-- Changes are appended in the order given, without those of shipments whose version has moved on.
local ids, parts, from, seen = {}, {}, 1, 0
for _, item in ipairs(shipments) do
  local id, member, expected, head, updated, state, shipment, clock, log, block, rank, offset, ship, status,
    isStamped, isRow, changes, bytes, facts, parked, fields, drops, codes = unpack(item)
  local key = KEYS[shipment]
  seen = seen + bytes
  if call('HGET', key, 'v') ~= expected then
    reply[#reply + 1] = -1
    parts[#parts + 1] = string.sub(texts, from, seen - bytes)
    from = seen + 1
  else
    local second = 0
    if isStamped == 1 then
      second, updated = stamp(KEYS[clock])
      local scores = stamped[log + 1] or {}
      stamped[log + 1], scores[#scores + 1], scores[#scores + 2] = scores, updated, member
    end
    call('HSET', key, 'v', head .. updated, 'st', state, unpack(fields))
    if #drops > 0 then call('HDEL', key, unpack(drops)) end
    if isRow == 1 then
      local row = second > 0 and pack('<I4I4B', second, ship, status) or string.char(status)
      call('SETRANGE', KEYS[block], offset, row)
      local ranks = changed[log] or {}
      changed[log], ranks[#ranks + 1] = ranks, pack('<I4', rank)
    end
    for _ = 1, changes do ids[#ids + 1] = id end
    for _, code in ipairs(codes) do noteCode(id, unpack(code)) end
    applied, released = applied + facts, released + parked
    reply[#reply + 1] = second
  end
end

for index, scores in pairs(stamped) do
  for start = 1, #scores, TOGETHER do
    call('ZADD', KEYS[index], unpack(scores, start, math.min(start + TOGETHER - 1, #scores)))
  end
end
keepClocks()
for log, ranks in pairs(changed) do noteRanks(KEYS[log], table.concat(ranks)) end
if #ids > 0 then
  if from > 1 then texts = table.concat(parts) .. string.sub(texts, from) end
  call('HINCRBY', KEYS[5], 'logged', #ids)
  call('XADD', KEYS[1], '*', 's', table.concat(ids, ' '), 'change', texts)
end
local untold = keepCodes(KEYS[4], codesLimit)
for field, more in pairs({applied = applied, released = released, untold = untold}) do
  if more ~= 0 then call('HINCRBY', KEYS[2], field, more) end
end
return reply
