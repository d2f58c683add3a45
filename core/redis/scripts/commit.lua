-- Commits new states of shipments: compares versions and sets; holds no rules.
--
-- KEYS[1]  change log (stream)
-- KEYS[2]  ledger (hash): `applied` grows by the facts
-- ARGV[1]  hash tag of the partition; further keys of the same tag are built from it
-- ARGV[2]  the service clock, seconds since 1970
-- ARGV[3]  shipments of one company that may share a statusUpdatedAt
-- then, for each shipment: id, expected version, company id, channel id, old status, new status, ship date (days),
--   stamp ('1' when the pair changed), new state (JSON), f = number of facts, c = number of changes,
--   f facts (JSON), c change log entries (JSON)
--
-- statusUpdatedAt never goes backwards within a company and no more than ARGV[3] shipments share one second, so that the
-- reconciliation procedure of document 1 always gets past a full page; in a burst it runs ahead of the clock.
-- Index members are ids of twelve digits, as in create.lua.
--
-- Reply: for each shipment its statusUpdatedAt, 0 when it was not stamped, -1 when its version has moved on
-- (nothing done for it).
local changes, ledger = KEYS[1], KEYS[2]
local tag, now, share = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local reply, applied = {}, 0

local function stamp(company)
  local key = tag .. ':clock:' .. company
  local last = redis.call('HMGET', key, 's', 'n')
  local second, used = tonumber(last[1]) or 0, tonumber(last[2]) or 0
  if now > second then second, used = now, 1
  elseif used < share then used = used + 1
  else second, used = second + 1, 1 end
  redis.call('HSET', key, 's', second, 'n', used)
  return second
end

local at = 4
while at <= #ARGV do
  local id, version, company, channel = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local old, new, ship, stamped = ARGV[at + 4], ARGV[at + 5], ARGV[at + 6], ARGV[at + 7] == '1'
  local facts, entries = tonumber(ARGV[at + 9]), tonumber(ARGV[at + 10])
  local key = tag .. ':s:' .. id
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
      local since = stamped and updated or redis.call('HGET', key, 'u') or 0
      redis.call('ZADD', index .. new .. ':upd', since, member)
    end
    for fact = at + 11, at + 10 + facts do
      redis.call('RPUSH', tag .. ':h:' .. id, ARGV[fact])
    end
    for entry = at + 11 + facts, at + 10 + facts + entries do
      redis.call('XADD', changes, '*', 's', id, 'change', ARGV[entry], 'u', updated)
    end
    applied = applied + facts
    reply[#reply + 1] = updated
  end
  at = at + 11 + facts + entries
end
if applied > 0 then redis.call('HINCRBY', ledger, 'applied', applied) end
return reply
