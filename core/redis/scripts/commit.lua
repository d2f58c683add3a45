-- Commits new states of shipments: compares versions and sets; holds no rules.
--
-- KEYS[1]  change log (stream)
-- KEYS[2]  ledger (hash): `applied` and `released` grow as each shipment says, `logged` by the changes
-- KEYS[3]  version of the configuration that facts must have been mapped with at least (string)
-- KEYS[4]  unmapped codes (set of `courier:code`)
-- ARGV[1]  hash tag of the partition; further keys of the same tag are built from it
-- ARGV[2]  the service clock, seconds since 1970
-- ARGV[3]  shipments of one company that may share a statusUpdatedAt
-- ARGV[4]  version of the configuration that the facts were mapped with
-- ARGV[5]  unmapped codes a partition keeps; the events of further ones are counted in the ledger as `untold`
-- ARGV[6]  first second of the hour that no stamp may stand in    ARGV[7]  the second it ends with; both 0 = none
-- ARGV[8]  rows in a block of columns (columns.ts)    ARGV[9]  status names, by their numbers
-- ARGV[10] days from the year 0 to 1970
-- ARGV[11] the shipments (MessagePack, one list of texts); for each:
--   id, expected version, company id, channel id, old status, new status, ship date (days), stamp ('1' when the
--   pair changed), new state (packed), h = number of history parts, c = number of changes, facts applied,
--   facts released from the set-aside, u = number of codes whose unmapped events became more or fewer,
--   h times: field of the history part, the part (packed; '' = it goes), c changes (two lines of JSON each),
--   u times: `courier:code`, description, events more or fewer, '1' when some are left in the shipment,
--     first and last time seen (milliseconds)
--
-- statusUpdatedAt never goes backwards within a company and no more than ARGV[3] shipments share one second, so that the
-- reconciliation procedure of document 1 always gets past a full page; in a burst it runs ahead of the clock. It skips the hour that the
-- autumn clock change repeats, since its local texts have been used once already.
-- Index members are ids of twelve digits, as in create.lua. All changes of a call stand in one entry of the log.
--
-- Reply: for each shipment its statusUpdatedAt, 0 when it was not stamped, -1 when its version has moved on
-- (nothing done for it); an empty list, and nothing done, when the facts were mapped with an older configuration.
local changes, ledger, floor, codes = unpack(KEYS)
local tag, now, share = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local reply, applied, released, untold, ids, told = {}, 0, 0, 0, {}, {}
local call, pack, format = redis.call, struct.pack, string.format

if (tonumber(call('GET', floor)) or 0) > tonumber(ARGV[4]) then return reply end

-- Clocks of the companies as they run on, and ranks of changed rows by channel: written once, at the end.
local clocks, changed = {}, {}

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
  clock.second, clock.used = second, used
  return second
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

local per, shift, numbersOf, named = tonumber(ARGV[8]), tonumber(ARGV[10]), {}, 0
for status in string.gmatch(ARGV[9], '%S+') do
  numbersOf[status], named = string.char(named), named + 1
end

-- The shipment's row, as columns.ts describes it, stands at its rank in the index by id.
local function changeRow(channel, member, updated, ship, status)
  local rank = call('ZRANK', tag .. ':i:' .. channel .. ':id', member)
  local block, start = math.floor(rank / per), (rank % per) * 16
  local name, number = tag .. ':b:' .. channel .. ':' .. block, numbersOf[status]
  if updated then call('SETRANGE', name, start + 4, pack('<I4I4', updated, ship + shift) .. number)
  else call('SETRANGE', name, start + 12, number) end
  local ranks = changed[channel] or {}
  changed[channel], ranks[#ranks + 1] = ranks, pack('<I4', rank)
end

local list, at = cmsgpack.unpack(ARGV[11]), 1
local count = #list
while at <= count do
  local id, version, company, channel = list[at], list[at + 1], list[at + 2], list[at + 3]
  local old, new, ship, stamped = list[at + 4], list[at + 5], list[at + 6], list[at + 7] == '1'
  local parts, entries, deltas = tonumber(list[at + 9]), tonumber(list[at + 10]), tonumber(list[at + 13])
  local key = tag .. ':s:' .. id
  local logged = at + 14 + 2 * parts
  local after = logged + entries
  if call('HGET', key, 'v') ~= version then
    reply[#reply + 1] = -1
  else
    local index, member = tag .. ':i:' .. channel .. ':', format('%012d', id)
    local updated = stamped and stamp(company) or 0
    local fields = {'v', tonumber(version) + 1, 'st', list[at + 8]}
    if stamped then
      fields[5], fields[6] = 'u', updated
      call('ZADD', index .. 'upd', updated, member)
    end
    for part = at + 14, logged - 2, 2 do
      if list[part + 1] == '' then call('HDEL', key, list[part])
      else fields[#fields + 1], fields[#fields + 2] = list[part], list[part + 1] end
    end
    call('HSET', key, unpack(fields))
    if stamped or old ~= new then changeRow(channel, member, stamped and updated, ship, new) end
    for entry = logged, after - 1 do
      ids[#ids + 1], told[#told + 1] = id, list[entry]
    end
    for delta = after, after + 6 * (deltas - 1), 6 do
      unmapped(id, list[delta], list[delta + 1], tonumber(list[delta + 2]), list[delta + 3] == '1',
        list[delta + 4], list[delta + 5])
    end
    applied = applied + tonumber(list[at + 11])
    released = released + tonumber(list[at + 12])
    reply[#reply + 1] = updated
  end
  at = after + 6 * deltas
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
  local logged = call('HINCRBY', ledger, 'logged', #ids)
  call('XADD', changes, '*', 'n', logged, 'k', #ids, 's', table.concat(ids, ' '), 'change', table.concat(told, '\n'))
end
if applied ~= 0 then call('HINCRBY', ledger, 'applied', applied) end
if released ~= 0 then call('HINCRBY', ledger, 'released', released) end
if untold > 0 then call('HINCRBY', ledger, 'untold', untold) end
return reply
