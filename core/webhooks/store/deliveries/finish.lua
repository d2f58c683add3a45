#!lua flags=allow-oom
-- Records the results of leased deliveries and the health of their endpoints. Runs with full memory too, since the receivers
-- have the requests: no leases are granted then, so it adds at most the deliveries in progress, 2 KB each.
--
-- KEYS[1]  endpoints with first attempts (sorted set by turn)    KEYS[2]  endpoints with retries (sorted set by due time)
-- KEYS[3]  leases: `endpoint delivery lease` (sorted set by their end)
-- KEYS[4]  under way per endpoint (hash), as in `lease.lua`      KEYS[5]  counter of turns
-- KEYS[6]  failing endpoints (sorted set)                        KEYS[7]  endpoints warned (set)
-- KEYS[8]  ledger (hash): `webhook:delivered`, `webhook:failed`
-- KEYS[9]  log of attempts (stream)                              KEYS[10] its counts (hash): `logged`, `taken`, `dropped`
-- KEYS[11], KEYS[12], KEYS[13]  those of the part `endpoint-health`    KEYS[14], KEYS[15]  of the part `endpoint-concurrency`
-- then, for each endpoint, five: first attempts (list), retries (sorted set), log, failed deliveries (sorted sets by creation),
--   attempts of the hour (hash); and behind them one for each of its results: the delivery (hash)
-- ARGV[1]  the service clock, milliseconds                       ARGV[2]  seconds the attempts of an hour live
-- ARGV[3]  attempts that may wait in their log; past it they are dropped and counted
-- ARGV[4]  where the scores of failing endpoints begin in the rings
-- ARGV[5]  concurrency that an endpoint begins with    ARGV[6]  milliseconds an unused concurrency is kept
-- ARGV[7]  milliseconds without a success after which the concurrency begins again with the next one
-- ARGV[8]  the results, 1,000 at most (MessagePack, one list of texts); for each endpoint, which stands there once: its id, how
--   many results, five of the part `endpoint-concurrency`, and for each result nine: delivery id, lease, new state (delivered, waiting, failed), attempts made in this
--   generation, attempts (JSON), due time (milliseconds, '' when none), reason ('' when none), status and latency bucket ('' when
--   nothing was sent), the attempt as a line of the log ('' when nothing was sent)
--
-- An attempt that delivered makes its endpoint healthy, any other one starts the clock of its failing. A lease that has
-- ended records nothing. A delivery that is gone, 30 days after its creation, counts all the same, and as failed when it waits.
-- No key is touched again once it may be empty: while its slot is being migrated, a missing key counts as moved.
--
-- Reply: how many were recorded.
local firstRing, retryRing, leases, flight, turns, failing, warned, ledger, attemptLog, attemptCounts = unpack(KEYS, 1, 10)
local FIXED_KEYS, MOST, STATES = 15, 1000, { delivered = true, waiting = true, failed = true }
local now, lives, mayWait, failingFrom = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local startConcurrency, concurrencyLife, away = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local list, call, at, keyIndex = cmsgpack.unpack(ARGV[8]), redis.call, 1, FIXED_KEYS
assert(now and lives and mayWait and failingFrom and startConcurrency and concurrencyLife and away, 'malformed arguments')
assert(type(list) == 'table', 'malformed arguments')
for item = 1, #list do assert(type(list[item]) == 'string', 'results are no texts') end
-- part: endpoint-concurrency

local endpoints, ids, members = {}, {}, {}
while at <= #list do
  local endpoint, results = { id = list[at] }, tonumber(list[at + 1])
  assert(results and results >= 1 and at + 6 + 9 * results <= #list, 'results are cut off')
  readSigns(endpoint, at + 2)
  endpoint.queue, endpoint.retries, endpoint.log = KEYS[keyIndex + 1], KEYS[keyIndex + 2], KEYS[keyIndex + 3]
  endpoint.failures, endpoint.hour, keyIndex, at = KEYS[keyIndex + 4], KEYS[keyIndex + 5], keyIndex + 5, at + 7
  for result = 1, results do
    local one = { delivery = KEYS[keyIndex + result] }
    one.id, one.lease, one.state, one.made, one.attempts, one.due, one.reason, one.bucket, one.line = unpack(list, at, at + 8)
    assert(STATES[one.state] and tonumber(one.made) and (one.state ~= 'waiting' or tonumber(one.due)), 'malformed result')
    endpoint[result], members[#members + 1], at = one, endpoint.id .. ' ' .. one.id .. ' ' .. one.lease, at + 9
  end
  ids[#ids + 1], endpoints[#endpoints + 1], keyIndex = endpoint.id, endpoint, keyIndex + results
end
assert(#members <= MOST and keyIndex == #KEYS, 'keys and results do not fit')
if #members == 0 then return 0 end

local counts, lines, ended, flights, none = {}, {}, {}, {}, {}
local function count(counters, name) counters[name] = (counters[name] or 0) + 1 end
-- part: endpoint-health
-- part: settle-delivery

local held = call('ZMSCORE', leases, unpack(members))
local since, stands, result = call('ZMSCORE', failing, unpack(ids)), call('ZMSCORE', firstRing, unpack(ids)), 0
local paused = call('ZMSCORE', KEYS[15], unpack(ids))
for at, endpoint in ipairs(endpoints) do
  local attempts, fails, isCured, failed = {}, since[at] ~= false, false, false
  for _, one in ipairs(endpoint) do
    result = result + 1
    if held[result] then
      settle(endpoint, one)
      ended[#ended + 1] = members[result]
      count(flights, string.sub(one.lease, 1, 1) == 'w' and 'w ' .. endpoint.id or endpoint.id)
      if one.bucket ~= '' then
        local outcome = one.state == 'delivered' and 'success' or 'failure'
        count(attempts, outcome)
        count(attempts, one.bucket)
        lines[#lines + 1] = one.line
        if outcome == 'success' then endpoint.hasWorked = true else endpoint.failure = one.line end
        if outcome == 'success' then isCured, fails, failed = isCured or fails, false, false
        elseif not fails then fails, failed = true, true end
      end
    end
  end
  endpoint.failed, endpoint.isCured, endpoint.fails, endpoint.failedSince = failed, isCured, fails, tonumber(since[at])
  for field, n in pairs(attempts) do
    if call('HINCRBY', endpoint.hour, field, n) == n then call('EXPIRE', endpoint.hour, lives) end
  end
  if not paused[at] and not endpoint.pausedUntil then returnToRings(endpoint, tonumber(stands[at])) end
end
local before = {}
for field, n in pairs(flights) do
  local left = call('HINCRBY', flight, field, -n)
  before[field] = left + n
  if left <= 0 then none[#none + 1] = field end
end
local counted = call('HMGET', attemptCounts, 'logged', 'taken')
if (counted[1] or 0) - (counted[2] or 0) + #lines > mayWait then
  if #lines > 0 then call('HINCRBY', attemptCounts, 'dropped', #lines) end
elseif #lines > 0 then
  call('XADD', attemptLog, '*', 'n', call('HINCRBY', attemptCounts, 'logged', #lines), 'a', table.concat(lines, '\n'))
end
for state, n in pairs(counts) do call('HINCRBY', ledger, 'webhook:' .. state, n) end
recordHealth(endpoints)
recordConcurrencies(endpoints, before)
if #none > 0 then call('HDEL', flight, unpack(none)) end
if #ended > 0 then call('ZREM', leases, unpack(ended)) end
return #ended
