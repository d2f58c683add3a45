#!lua flags=allow-oom
-- Records what came of leased deliveries and of the health of their endpoints. Runs with a full memory too, since the receivers
-- have their requests: no lease is handed out then, so it grows by what is under way at most, 2 KB a delivery.
--
-- KEYS[1]  endpoints with first attempts (sorted set by turn)
-- KEYS[2]  endpoints with retries (sorted set by due time)
-- KEYS[3]  leases: `endpoint delivery lease` (sorted set by their end)
-- KEYS[4]  deliveries under way per endpoint (hash)
-- KEYS[5]  counter of turns                    KEYS[6]  failing endpoints (sorted set)
-- KEYS[7]  endpoints warned (set)              KEYS[8]  ledger (hash): `webhook:delivered`, `webhook:failed`
-- KEYS[9]  log of attempts (stream)            KEYS[10] its counts (hash): `logged`, `taken`, `dropped`
-- ARGV[1]  hash tag of the partition; further keys of the same tag are built from it
-- ARGV[2]  the service clock, milliseconds
-- ARGV[3]  hour of the statistics    ARGV[4]  seconds they live
-- ARGV[5]  attempts that may wait in their log; past it they are dropped and counted
-- ARGV[6]  the results, 100 at most (MessagePack, one list of texts); for each endpoint, which stands there once: its id, how
--   many deliveries, and for each of them nine: delivery id, lease, new state (delivered, waiting, failed), attempts made in
--   this generation, attempts (JSON), due time (milliseconds, '' when none), reason ('' when none), latency bucket ('' when
--   nothing was sent), the attempt as a line of the log ('' when nothing was sent)
--
-- An attempt that delivered makes its endpoint healthy, any other one starts the clock of its failing. A lease that has
-- ended records nothing. A delivery that is gone, 30 days after its creation, counts all the same, and as failed when it waits.
--
-- Reply: how many were recorded.
local firstRing, retryRing, leases, flight, turns, failing, warned, ledger, attemptLog, attemptCounts = unpack(KEYS)
local tag, now, list = ARGV[1], ARGV[2], cmsgpack.unpack(ARGV[6])
local call = redis.call
local counts, lines, ended = {}, {}, {}

local function count(counters, name)
  counters[name] = (counters[name] or 0) + 1
end

-- What has failed stands in its endpoint's set of failed deliveries, by creation as in the log.
local function keepFailed(endpoint, delivery)
  local log, failed = tag .. ':dl:' .. endpoint, tag .. ':df:' .. endpoint
  local created = call('ZSCORE', log, delivery)
  if not created then return end
  call('ZADD', failed, created, delivery)
  call('PEXPIRE', failed, call('PTTL', log))
end

-- Due time and reason are empty before a first attempt: nothing to write where they stay so. The state of a delivery that is
-- there is known, so not every field is a new one.
local function keep(key, state, made, attempts, due, reason)
  if due == '' and reason == '' and made == '1' then
    return call('HSET', key, 's', state, 'n', made, 'a', attempts) < 3
  end
  return call('HSET', key, 's', state, 'n', made, 'a', attempts, 'd', due, 'r', reason) < 5
end

local function settle(endpoint, at)
  local delivery, state, due = list[at], list[at + 2], list[at + 5]
  local key = tag .. ':d:' .. delivery
  if keep(key, state, list[at + 3], list[at + 4], due, list[at + 6]) then
    if state == 'waiting' then call('ZADD', tag .. ':dr:' .. endpoint, due, delivery) end
    if state == 'failed' then keepFailed(endpoint, delivery) end
  else
    call('DEL', key)
    if state == 'waiting' then state = 'failed' end
  end
  if state ~= 'waiting' then count(counts, state) end
end

-- The clock of an endpoint's failing, after its attempts in their order.
local function setHealth(endpoint, fails, results)
  for _, result in ipairs(results) do
    if result == 'success' and fails then
      call('ZREM', failing, endpoint)
      call('SREM', warned, endpoint)
    elseif result == 'failure' and not fails then
      call('ZADD', failing, now, endpoint)
    end
    fails = result == 'failure'
  end
end

local function countAttempts(endpoint, attempts)
  local hour, isNew = tag .. ':dh:' .. endpoint .. ':' .. ARGV[3], false
  for field, n in pairs(attempts) do
    if call('HINCRBY', hour, field, n) == n then isNew = true end
  end
  if isNew then call('EXPIRE', hour, ARGV[4]) end
end

-- An endpoint that has something left stands in the rings again.
local function bringBack(endpoint, stands)
  if not stands and call('EXISTS', tag .. ':dq:' .. endpoint) == 1 then
    call('ZADD', firstRing, call('INCR', turns), endpoint)
  end
  local first = call('ZRANGE', tag .. ':dr:' .. endpoint, 0, 0, 'WITHSCORES')
  if first[2] then call('ZADD', retryRing, first[2], endpoint) end
end

-- The endpoints of the list, and the leases of its results, in their order.
local ids, lanes, members = {}, {}, {}
local at = 1
while at <= #list do
  local one = { id = list[at], first = at + 2, last = at + 2 + 9 * (tonumber(list[at + 1]) - 1), ended = 0 }
  ids[#ids + 1], lanes[#lanes + 1] = one.id, one
  for result = one.first, one.last, 9 do
    members[#members + 1] = one.id .. ' ' .. list[result] .. ' ' .. list[result + 1]
  end
  at = one.last + 9
end

-- How all of them stand is asked at once, and written at once.
local held = call('ZMSCORE', leases, unpack(members))
local underWay, fails = call('HMGET', flight, unpack(ids)), call('ZMSCORE', failing, unpack(ids))
local stands = call('ZMSCORE', firstRing, unpack(ids))
local place = 0
for at, one in ipairs(lanes) do
  local attempts, results = {}, {}
  for result = one.first, one.last, 9 do
    place = place + 1
    if held[place] then
      settle(one.id, result)
      ended[#ended + 1], one.ended = members[place], one.ended + 1
      if list[result + 7] ~= '' then
        local outcome = list[result + 2] == 'delivered' and 'success' or 'failure'
        results[#results + 1] = outcome
        count(attempts, outcome)
        count(attempts, list[result + 7])
        lines[#lines + 1] = list[result + 8]
      end
    end
  end
  if #results > 0 then
    setHealth(one.id, fails[at], results)
    countAttempts(one.id, attempts)
  end
  bringBack(one.id, stands[at])
end
if #ended > 0 then
  call('ZREM', leases, unpack(ended))
  local left, none = {}, {}
  for at, one in ipairs(lanes) do
    local others = (tonumber(underWay[at]) or 0) - one.ended
    if one.ended > 0 and others > 0 then left[#left + 1], left[#left + 2] = one.id, others
    elseif one.ended > 0 then none[#none + 1] = one.id end
  end
  if #left > 0 then call('HSET', flight, unpack(left)) end
  if #none > 0 then call('HDEL', flight, unpack(none)) end
end
if #lines > 0 then
  local counted = call('HMGET', attemptCounts, 'logged', 'taken')
  local waiting = (counted[1] or 0) - (counted[2] or 0)
  if waiting + #lines > tonumber(ARGV[5]) then
    call('HINCRBY', attemptCounts, 'dropped', #lines)
  else
    local logged = call('HINCRBY', attemptCounts, 'logged', #lines)
    call('XADD', attemptLog, '*', 'n', logged, 'a', table.concat(lines, '\n'))
  end
end
for state, n in pairs(counts) do call('HINCRBY', ledger, 'webhook:' .. state, n) end
return #ended
