-- Records what came of leased deliveries and of the health of their endpoints.
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
-- then, for each endpoint: its id, how many deliveries, and for each of them nine: delivery id, lease, new state (delivered,
--   waiting, failed), attempts made in this generation, attempts (JSON), due time (milliseconds, '' when none),
--   reason ('' when none), latency bucket ('' when nothing was sent), the attempt as a line of the log ('' when nothing was sent)
--
-- An attempt that delivered makes its endpoint healthy, any other one starts the clock of its failing. A lease that has
-- ended records nothing. A delivery that is gone, 30 days after its creation, counts all the same, and as failed when it waits.
--
-- Reply: how many were recorded.
local firstRing, retryRing, leases, flight, turns, failing, warned, ledger, attemptLog, attemptCounts = unpack(KEYS)
local tag, now = ARGV[1], ARGV[2]
local counts, lines, recorded = {}, {}, 0

local function count(counters, name)
  counters[name] = (counters[name] or 0) + 1
end

-- What has failed stands in its endpoint's set of failed deliveries, by creation as in the log.
local function keepFailed(endpoint, delivery)
  local log, failed = tag .. ':dl:' .. endpoint, tag .. ':df:' .. endpoint
  local created = redis.call('ZSCORE', log, delivery)
  if not created then return end
  redis.call('ZADD', failed, created, delivery)
  redis.call('PEXPIRE', failed, redis.call('PTTL', log))
end

-- Due time and reason are empty before a first attempt: nothing to write where they stay so.
local function keep(key, state, made, attempts, due, reason)
  if due == '' and reason == '' and made == '1' then
    return redis.call('HSET', key, 's', state, 'n', made, 'a', attempts) < 3
  end
  return redis.call('HSET', key, 's', state, 'n', made, 'a', attempts, 'd', due, 'r', reason) < 3
end

local function settle(endpoint, at)
  local delivery, state, due = ARGV[at], ARGV[at + 2], ARGV[at + 5]
  local key = tag .. ':d:' .. delivery
  if keep(key, state, ARGV[at + 3], ARGV[at + 4], due, ARGV[at + 6]) then
    if state == 'waiting' then redis.call('ZADD', tag .. ':dr:' .. endpoint, due, delivery) end
    if state == 'failed' then keepFailed(endpoint, delivery) end
  else
    redis.call('DEL', key)
    if state == 'waiting' then state = 'failed' end
  end
  if state ~= 'waiting' then count(counts, state) end
end

-- The clock of an endpoint's failing, after its attempts in their order.
local function setHealth(endpoint, results)
  local fails = redis.call('ZSCORE', failing, endpoint) ~= false
  for _, result in ipairs(results) do
    if result == 'success' and fails then
      redis.call('ZREM', failing, endpoint)
      redis.call('SREM', warned, endpoint)
    elseif result == 'failure' and not fails then
      redis.call('ZADD', failing, now, endpoint)
    end
    fails = result == 'failure'
  end
end

local function countAttempts(endpoint, attempts)
  local hour, isNew = tag .. ':dh:' .. endpoint .. ':' .. ARGV[3], false
  for field, n in pairs(attempts) do
    if redis.call('HINCRBY', hour, field, n) == n then isNew = true end
  end
  if isNew then redis.call('EXPIRE', hour, ARGV[4]) end
end

-- An endpoint that has something left stands in the rings again.
local function bringBack(endpoint)
  if redis.call('EXISTS', tag .. ':dq:' .. endpoint) == 1 and not redis.call('ZSCORE', firstRing, endpoint) then
    redis.call('ZADD', firstRing, redis.call('INCR', turns), endpoint)
  end
  local first = redis.call('ZRANGE', tag .. ':dr:' .. endpoint, 0, 0, 'WITHSCORES')
  if first[2] then redis.call('ZADD', retryRing, first[2], endpoint) end
end

local at = 6
while at <= #ARGV do
  local endpoint, last = ARGV[at], at + 2 + 9 * (tonumber(ARGV[at + 1]) - 1)
  local attempts, results, ended = {}, {}, 0
  for one = at + 2, last, 9 do
    if redis.call('ZREM', leases, endpoint .. ' ' .. ARGV[one] .. ' ' .. ARGV[one + 1]) == 1 then
      settle(endpoint, one)
      ended = ended + 1
      if ARGV[one + 7] ~= '' then
        local result = ARGV[one + 2] == 'delivered' and 'success' or 'failure'
        results[#results + 1] = result
        count(attempts, result)
        count(attempts, ARGV[one + 7])
        lines[#lines + 1] = ARGV[one + 8]
      end
    end
  end
  if ended > 0 and redis.call('HINCRBY', flight, endpoint, -ended) <= 0 then
    redis.call('HDEL', flight, endpoint)
  end
  if #results > 0 then
    setHealth(endpoint, results)
    countAttempts(endpoint, attempts)
  end
  bringBack(endpoint)
  recorded = recorded + ended
  at = last + 9
end
if #lines > 0 then
  local counted = redis.call('HMGET', attemptCounts, 'logged', 'taken')
  local waiting = (counted[1] or 0) - (counted[2] or 0)
  if waiting + #lines > tonumber(ARGV[5]) then
    redis.call('HINCRBY', attemptCounts, 'dropped', #lines)
  else
    local logged = redis.call('HINCRBY', attemptCounts, 'logged', #lines)
    redis.call('XADD', attemptLog, '*', 'n', logged, 'a', table.concat(lines, '\n'))
  end
end
for state, n in pairs(counts) do redis.call('HINCRBY', ledger, 'webhook:' .. state, n) end
return recorded
