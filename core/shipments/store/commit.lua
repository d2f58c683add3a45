#!lua
-- Commits new states of shipments: compares versions and sets; holds no rules.
--
-- KEYS[1]  change log (stream)
-- KEYS[2]  ledger (hash): `applied` and `released` grow as each shipment says
-- KEYS[3]  version of the configuration that facts must have been mapped with at least (string)
-- KEYS[4]  unmapped codes (set of `courier:code`)
-- KEYS[5]  counts of the log (hash): `logged` grows by the changes
-- KEYS[6…] in any order, the keys that the list refers to by their index in KEYS
-- ARGV[1]  the service clock, seconds since 1970    ARGV[2]  shipments of one company that may share a statusUpdatedAt
-- ARGV[3]  version of the configuration that the facts were mapped with
-- ARGV[4]  unmapped codes a partition keeps; events of further ones are counted in the ledger as `untold`
-- ARGV[5]  first second of the hour that no stamp may stand in    ARGV[6]  the second it ends with; both 0 = none
-- ARGV[7]  the shipments (MessagePack, one list of texts and numbers #), for each:
--   id, member of the indices, expected head, new head without its end, statusUpdatedAt so far (the end of the head), where in
--   the block the change begins (statusUpdatedAt when stamped, else the status), # shipment (hash), # clock of its company
--   (hash), # row log of its channel (string; its index by statusUpdatedAt, a sorted set, follows), # block of its row
--   (string), # rank, # ship date (days since the year 0), # new status (its number), # stamp (1 when the pair changed), # row
--   (1 when its row changes; 0 needs no block), # changes, # bytes of them, # facts applied, # facts released from the
--   parked, # fields that are written, # fields that go
-- ARGV[8]  codes whose unmapped events became more or fewer (MessagePack), each a list of:
--   # which of the shipments, `courier:code`, description, first and last time seen (milliseconds), # its counts (hash; its
--   shipments, a sorted set by id, follow), # events more or fewer, # 1 when some are left in the shipment
-- ARGV[9]  the changes of all of them, two lines of JSON each
-- ARGV[10…] for each shipment: its new state, the fields and values to be written in turn, the fields that go
--
-- Texts go on as they came: Redis hashes every byte of a text that a script makes, and writes a number with 17 digits. Long ones
-- are arguments of their own: from a list they would be hashed twice.
-- Index members are ids of twelve digits, and rows stand at the rank in the index by id, as in create.lua (columns.ts).
-- All changes of a call stand in one entry of the log.
-- Reply: for each shipment its statusUpdatedAt, 0 when it was not stamped, -1 when its version has moved on
-- (nothing done for it); an empty list, and nothing done, when the facts were mapped with an older configuration.
local ROW, CODE, FIRST_TEXT, TOGETHER = 21, 8, 10, 1000
local now, share, version, codesLimit = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0
local skipFrom, skipTo, rows, codes = ARGV[5] + 0, ARGV[6] + 0, cmsgpack.unpack(ARGV[7]), cmsgpack.unpack(ARGV[8])
local texts, call, pack, unpack = ARGV[9], redis.call, struct.pack, unpack
-- part: row-log
-- part: company-clock
-- part: unmapped-codes

-- Everything is checked before the first write: missing or wrongly typed values fail here. A text compares with texts alone.
local sum, areTexts, textBytes, text, codesOf = 0, true, 0, FIRST_TEXT, {}
for at = 1, #rows, ROW do
  local id, member, expected, head, updated, offset, shipment, clock, log, block, rank, ship, status, isStamped, isRow, changes,
    bytes, facts, parked, fields, drops = unpack(rows, at, at + ROW - 1)
  areTexts = areTexts and id >= '' and member >= '' and expected >= '' and head >= '' and updated >= '' and offset >= ''
  sum = sum + rank + ship + isStamped + facts + parked
  assert(KEYS[shipment] and KEYS[clock] and KEYS[log + 1], 'keys of a shipment')
  assert(isRow == 0 or (KEYS[block] and offset + 0 >= 0 and status <= 255), 'row of a shipment')
  assert(changes >= 0 and 2 * changes <= bytes and fields >= 0 and drops >= 0, 'a shipment')
  assert(2 * fields <= TOGETHER and drops <= TOGETHER, 'too many fields')
  textBytes, text = textBytes + bytes, text + 1 + 2 * fields + drops
end
for _, code in ipairs(codes) do
  local index, name, description, first, last, counts, events, isLeft = unpack(code)
  areTexts, sum = areTexts and name >= '' and description >= '', sum + first + last + events + isLeft
  assert(KEYS[counts + 1] and #code == CODE and rows[index * ROW], 'a code')
  codesOf[index] = codesOf[index] or {}
  codesOf[index][#codesOf[index] + 1] = code
end
assert(#rows % ROW == 0 and textBytes == #texts and text == #ARGV + 1, 'length of the list, of the changes or of the texts')

local reply, applied, released = {}, 0, 0
if (tonumber(call('GET', KEYS[3])) or 0) > version then return reply end

-- By channel the ranks of changed rows, and what goes into the index by statusUpdatedAt: written once, at the end.
local changed, stamped = {}, {}

-- Changes are appended in the order given, without those of shipments whose version has moved on.
local ids, parts, from, seen = {}, {}, 1, 0
text = FIRST_TEXT
for at = 1, #rows, ROW do
  local id, member, expected, head, updated, offset, shipment, clock, log, block, rank, ship, status, isStamped, isRow, changes,
    bytes, facts, parked, fields, drops = unpack(rows, at, at + ROW - 1)
  local key, state, dropped = KEYS[shipment], text, text + 1 + 2 * fields
  text = dropped + drops
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
    call('HSET', key, 'v', head .. updated, 'st', unpack(ARGV, state, dropped - 1))
    if drops > 0 then call('HDEL', key, unpack(ARGV, dropped, text - 1)) end
    if isRow == 1 then
      local row = second > 0 and pack('<I4I4B', second, ship, status) or string.char(status)
      call('SETRANGE', KEYS[block], offset, row)
      local ranks = changed[log] or {}
      changed[log], ranks[#ranks + 1] = ranks, pack('<I4', rank)
    end
    for _ = 1, changes do ids[#ids + 1] = id end
    for _, code in ipairs(codesOf[(at - 1) / ROW + 1] or {}) do noteCode(id, unpack(code, 2)) end
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
