-- Commits new states of shipments: compares versions and sets; holds no rules.
--
-- KEYS[1]  change log (stream)
-- KEYS[2]  ledger (hash): `applied` and `released` grow as each shipment says
-- KEYS[3]  version of the configuration that facts must have been mapped with at least (string)
-- KEYS[4]  unmapped codes (set of `courier:code`)
-- ARGV[1]  hash tag of the partition; further keys of the same tag are built from it
-- ARGV[2]  the service clock, seconds since 1970
-- ARGV[3]  shipments of one company that may share a statusUpdatedAt
-- ARGV[4]  version of the configuration that the facts were mapped with
-- ARGV[5]  unmapped codes a partition keeps; the events of further ones are counted in the ledger as `untold`
-- ARGV[6]  first second of the hour that no stamp may stand in    ARGV[7]  the second it ends with; both 0 = none
-- ARGV[8]  rows in a block of columns (columns.ts)    ARGV[9]  status names, by their numbers
-- then, for each shipment: id, expected version, company id, channel id, old status, new status, ship date (days),
--   stamp ('1' when the pair changed), new state (packed), h = number of history parts, c = number of changes,
--   facts applied, facts released from the set-aside,
--   u = number of codes whose unmapped events became more or fewer,
--   h times: field of the history part, the part (packed), c change log entries (JSON),
--   u times: `courier:code`, description, events more or fewer, '1' when some are left in the shipment,
--     first and last time seen (milliseconds)
--
-- statusUpdatedAt never goes backwards within a company and no more than ARGV[3] shipments share one second, so that the
-- reconciliation procedure of document 1 always gets past a full page; in a burst it runs ahead of the clock. It skips the hour that the
-- autumn clock change repeats, since its local texts have been used once already.
-- Index members are ids of twelve digits, as in create.lua.
--
-- Reply: for each shipment its statusUpdatedAt, 0 when it was not stamped, -1 when its version has moved on
-- (nothing done for it); an empty list, and nothing done, when the facts were mapped with an older configuration.
local changes, ledger, floor, codes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local tag, now, share = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local reply, applied, released, untold = {}, 0, 0, 0

if (tonumber(redis.call('GET', floor)) or 0) > tonumber(ARGV[4]) then return reply end

local function stamp(company)
  local key = tag .. ':clock:' .. company
  local last = redis.call('HMGET', key, 's', 'n')
  local second, used = tonumber(last[1]) or 0, tonumber(last[2]) or 0
  if now > second then second, used = now, 1
  elseif used < share then used = used + 1
  else second, used = second + 1, 1 end
  if second >= tonumber(ARGV[6]) and second < tonumber(ARGV[7]) then second, used = tonumber(ARGV[7]), 1 end
  redis.call('HSET', key, 's', second, 'n', used)
  return second
end

local function unmapped(id, name, description, events, present, first, last)
  local counts, shipments = tag .. ':um:' .. name, tag .. ':us:' .. name
  if redis.call('SISMEMBER', codes, name) == 0 then
    if events < 0 then return end
    if redis.call('SCARD', codes) >= tonumber(ARGV[5]) then
      untold = untold + events
      return
    end
    redis.call('SADD', codes, name)
  end
  if present then redis.call('ZADD', shipments, id, id) else redis.call('ZREM', shipments, id) end
  if redis.call('EXISTS', shipments) == 0 then
    redis.call('SREM', codes, name)
    redis.call('DEL', counts)
    return
  end
  redis.call('HINCRBY', counts, 'events', events)
  if events < 0 then return end
  local seen = redis.call('HMGET', counts, 'first', 'last')
  if not seen[1] or tonumber(first) < tonumber(seen[1]) then redis.call('HSET', counts, 'first', first) end
  if not seen[2] or tonumber(last) >= tonumber(seen[2]) then
    redis.call('HSET', counts, 'last', last, 'description', description)
  end
end

local per, numbersOf, named = tonumber(ARGV[8]), {}, 0
for status in string.gmatch(ARGV[9], '%S+') do
  numbersOf[status], named = named, named + 1
end

-- The shipment's row, as columns.ts describes it, stands at its rank in the index by id.
local function changeRow(channel, member, updated, status)
  local rank = redis.call('ZRANK', tag .. ':i:' .. channel .. ':id', member)
  local block, start = math.floor(rank / per), (rank % per) * 16
  local name = tag .. ':b:' .. channel .. ':' .. block
  if updated then redis.call('SETRANGE', name, start + 4, struct.pack('<I4', updated)) end
  if status then redis.call('SETRANGE', name, start + 12, string.char(numbersOf[status])) end
  redis.call('HINCRBY', tag .. ':bv:' .. channel, block, 1)
end

local at = 10
while at <= #ARGV do
  local id, version, company, channel = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local old, new, ship, stamped = ARGV[at + 4], ARGV[at + 5], ARGV[at + 6], ARGV[at + 7] == '1'
  local parts, entries, deltas = tonumber(ARGV[at + 9]), tonumber(ARGV[at + 10]), tonumber(ARGV[at + 13])
  local key = tag .. ':s:' .. id
  local logged = at + 14 + 2 * parts
  local after = logged + entries
  if redis.call('HGET', key, 'v') ~= version then
    reply[#reply + 1] = -1
  else
    local index, member = tag .. ':i:' .. channel .. ':', string.format('%012d', id)
    local updated = stamped and stamp(company) or 0
    redis.call('HSET', key, 'v', tonumber(version) + 1, 'st', ARGV[at + 8])
    if stamped then
      redis.call('HSET', key, 'u', updated)
      redis.call('ZADD', index .. 'upd', updated, member)
    end
    if old ~= new then
      redis.call('ZREM', index .. old .. ':id', member)
      redis.call('ZREM', index .. old .. ':ship', member)
      redis.call('ZREM', index .. old .. ':upd', member)
      redis.call('ZADD', index .. new .. ':id', id, member)
      redis.call('ZADD', index .. new .. ':ship', ship, member)
    end
    if stamped or old ~= new then
      changeRow(channel, member, stamped and updated, old ~= new and new)
      local since = stamped and updated or redis.call('HGET', key, 'u') or 0
      redis.call('ZADD', index .. new .. ':upd', since, member)
    end
    for part = at + 14, logged - 2, 2 do
      redis.call('HSET', key, ARGV[part], ARGV[part + 1])
    end
    for entry = logged, after - 1 do
      redis.call('XADD', changes, '*', 's', id, 'change', ARGV[entry], 'u', updated)
    end
    for delta = after, after + 6 * (deltas - 1), 6 do
      unmapped(id, ARGV[delta], ARGV[delta + 1], tonumber(ARGV[delta + 2]), ARGV[delta + 3] == '1',
        ARGV[delta + 4], ARGV[delta + 5])
    end
    applied = applied + tonumber(ARGV[at + 11])
    released = released + tonumber(ARGV[at + 12])
    reply[#reply + 1] = updated
  end
  at = after + 6 * deltas
end
if applied ~= 0 then redis.call('HINCRBY', ledger, 'applied', applied) end
if released ~= 0 then redis.call('HINCRBY', ledger, 'released', released) end
if untold > 0 then redis.call('HINCRBY', ledger, 'untold', untold) end
return reply
