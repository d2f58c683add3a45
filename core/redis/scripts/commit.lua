#!lua
-- Commits new states of shipments: compares versions and sets; holds no rules.
--
-- KEYS[1]  change log (stream)
-- KEYS[2]  ledger (hash): `applied` and `released` grow as each shipment says
-- KEYS[3]  version of the configuration that facts must have been mapped with at least (string)
-- KEYS[4]  unmapped codes (set of `courier:code`)
-- KEYS[5]  counts of the log (hash): `logged` grows by the changes
-- ARGV[1]  hash tag of the partition; further keys of the same tag are built from it
-- ARGV[2]  the service clock, seconds since 1970
-- ARGV[3]  shipments of one company that may share a statusUpdatedAt
-- ARGV[4]  version of the configuration that the facts were mapped with
-- ARGV[5]  unmapped codes a partition keeps; the events of further ones are counted in the ledger as `untold`
-- ARGV[6]  first second of the hour that no stamp may stand in    ARGV[7]  the second it ends with; both 0 = none
-- ARGV[8]  the shipments (MessagePack, one list of texts and numbers #); for each:
--   id, expected head, new head without its end, statusUpdatedAt so far (the end of the head), member of the indices,
--   company id, channel id, # stamp (1 when the pair changed), # row (1 when its row changes), # rank, block of its row,
--   where in the block the change begins (statusUpdatedAt when stamped, else the status), # ship date (days since the
--   year 0), # new status (its number), # h = fields to be written, # d = fields that go, # changes, # bytes of them, # u = codes whose
--   unmapped events became more or fewer, # facts applied, # facts released from the set-aside, new state (packed),
--   h times: field, value, d times: field,
--   u times: `courier:code`, description, # events more or fewer, # 1 when some are left in the shipment,
--     first and last time seen (milliseconds)
-- ARGV[9]  the changes of all of them, two lines of JSON each
--
-- Texts go on as they came: Redis hashes every byte of a text that a script makes, and writes a number with 17 digits.
--
-- statusUpdatedAt never goes backwards within a company and no more than ARGV[3] shipments share one second, so that the
-- reconciliation procedure of document 1 always gets past a full page; in a burst it runs ahead of the clock. It skips the hour that the
-- autumn clock change repeats, since its local texts have been used once already.
-- Index members are ids of twelve digits, and rows stand at the rank in the index by id, as in create.lua (columns.ts).
-- All changes of a call stand in one entry of the log.
--
-- Reply: for each shipment its statusUpdatedAt, 0 when it was not stamped, -1 when its version has moved on
-- (nothing done for it); an empty list, and nothing done, when the facts were mapped with an older configuration.
local changes, ledger, floor, codes, logCounts = unpack(KEYS)
local tag, now, share = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local reply, applied, released, untold = {}, 0, 0, 0
local call, pack, format = redis.call, struct.pack, string.format

if (tonumber(call('GET', floor)) or 0) > tonumber(ARGV[4]) then return reply end

-- Clocks of the companies as they run on, and by channel the ranks of changed rows and what goes into the index by
-- statusUpdatedAt: written once, at the end.
local clocks, changed, stamped = {}, {}, {}

local function ofChannel(lists, channel)
  local list = lists[channel]
  if not list then
    list = {}
    lists[channel] = list
  end
  return list
end

local function stamp(company)
  local clock = clocks[company]
  if not clock then
    local last = call('HMGET', tag .. ':clock:' .. company, 's', 'n')
    clock = {second = tonumber(last[1]) or 0, used = tonumber(last[2]) or 0}
    clocks[company] = clock
  end
  local second, used = clock.second, clock.used
  if now > second then second, used = now, 1
  elseif used < share then used = used + 1
  else second, used = second + 1, 1 end
  if second >= tonumber(ARGV[6]) and second < tonumber(ARGV[7]) then second, used = tonumber(ARGV[7]), 1 end
  clock.used = used
  if second ~= clock.second then clock.second, clock.text = second, nil end
  clock.text = clock.text or format('%d', second)
  return second, clock.text
end

local function unmapped(id, name, description, events, present, first, last)
  local counts, shipments = tag .. ':um:' .. name, tag .. ':us:' .. name
  if call('SISMEMBER', codes, name) == 0 then
    if events < 0 then return end
    if call('SCARD', codes) >= tonumber(ARGV[5]) then
      untold = untold + events
      return
    end
    call('SADD', codes, name)
  end
  if present then call('ZADD', shipments, id, id) else call('ZREM', shipments, id) end
  if call('EXISTS', shipments) == 0 then
    call('SREM', codes, name)
    call('DEL', counts)
    return
  end
  call('HINCRBY', counts, 'events', events)
  if events < 0 then return end
  local seen = call('HMGET', counts, 'first', 'last')
  if not seen[1] or tonumber(first) < tonumber(seen[1]) then call('HSET', counts, 'first', first) end
  if not seen[2] or tonumber(last) >= tonumber(seen[2]) then
    call('HSET', counts, 'last', last, 'description', description)
  end
end

-- Changes are told as they came, without those of shipments whose version has moved on.
local ids, parts, from, seen = {}, {}, 1, 0
local function told()
  if from == 1 then return ARGV[9] end
  parts[#parts + 1] = string.sub(ARGV[9], from)
  return table.concat(parts)
end

local list, at = cmsgpack.unpack(ARGV[8]), 1
local count = #list
while at <= count do
  local id, head, company, channel = list[at], list[at + 2], list[at + 5], list[at + 6]
  local fields, drops = list[at + 14], list[at + 15]
  local key = tag .. ':s:' .. id
  local dropped = at + 22 + 2 * fields
  local after = dropped + drops
  local deltas = after + 6 * list[at + 18]
  seen = seen + list[at + 17]
  if call('HGET', key, 'v') ~= list[at + 1] then
    reply[#reply + 1] = -1
    parts[#parts + 1] = string.sub(ARGV[9], from, seen - list[at + 17])
    from = seen + 1
  else
    local second, updated = 0, '0'
    if list[at + 7] == 1 then
      second, updated = stamp(company)
      head = head .. updated
      local scores = ofChannel(stamped, channel)
      scores[#scores + 1] = updated
      scores[#scores + 1] = list[at + 4]
    else
      head = head .. list[at + 3]
    end
    if fields == 1 then call('HSET', key, 'v', head, 'st', list[at + 21], list[at + 22], list[at + 23])
    else call('HSET', key, 'v', head, 'st', unpack(list, at + 21, dropped - 1)) end
    if drops > 0 then call('HDEL', key, unpack(list, dropped, after - 1)) end
    if list[at + 8] == 1 then
      local status = list[at + 13]
      local row = second > 0 and pack('<I4I4B', second, list[at + 12], status) or string.char(status)
      call('SETRANGE', tag .. ':b:' .. channel .. ':' .. list[at + 10], list[at + 11], row)
      local ranks = ofChannel(changed, channel)
      ranks[#ranks + 1] = pack('<I4', list[at + 9])
    end
    for _ = 1, list[at + 16] do ids[#ids + 1] = id end
    for delta = after, deltas - 6, 6 do
      unmapped(id, list[delta], list[delta + 1], list[delta + 2], list[delta + 3] == 1,
        list[delta + 4], list[delta + 5])
    end
    applied = applied + list[at + 19]
    released = released + list[at + 20]
    reply[#reply + 1] = second
  end
  at = deltas
end
for channel, scores in pairs(stamped) do
  call('ZADD', tag .. ':i:' .. channel .. ':upd', unpack(scores))
end
for company, clock in pairs(clocks) do
  call('HSET', tag .. ':clock:' .. company, 's', clock.second, 'n', clock.used)
end
-- Tells the processes that keep rows (read-columns.ts) which have changed, as create.lua does.
for channel, list in pairs(changed) do
  local log, ranks = tag .. ':rl:' .. channel, table.concat(list)
  local length = call('APPEND', log, ranks)
  if length == #ranks then call('SET', log, pack('<d', 0) .. ranks) end
  if length > 65536 then
    local gone = struct.unpack('<d', call('GETRANGE', log, 0, 7)) + (length - 32776) / 4
    call('SET', log, pack('<d', gone) .. call('GETRANGE', log, -32768, -1))
  end
end
if #ids > 0 then
  call('HINCRBY', logCounts, 'logged', #ids)
  call('XADD', changes, '*', 's', table.concat(ids, ' '), 'change', told())
end
if applied ~= 0 then call('HINCRBY', ledger, 'applied', applied) end
if released ~= 0 then call('HINCRBY', ledger, 'released', released) end
if untold > 0 then call('HINCRBY', ledger, 'untold', untold) end
return reply
