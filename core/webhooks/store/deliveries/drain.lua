#!lua
-- Fails the waiting deliveries of an endpoint that was deleted or disabled. Deliveries in progress finish normally.
--
-- KEYS[1]  endpoints with first attempts (sorted set)    KEYS[2]  endpoints with retries (sorted set)
-- KEYS[3]  ledger (hash): `webhook:failed` grows
-- KEYS[4]  first attempts of the endpoint (list)         KEYS[5]  its retries (sorted set)
-- KEYS[6]  its log (sorted set)                          KEYS[7]  its failed deliveries (sorted set)
-- then the deliveries (hashes)
-- ARGV[1]  endpoint id    ARGV[2]  reason
-- ARGV[3]  how many of the deliveries that follow were at the head of its first attempts; the others are retries
-- then the ids of the deliveries, 500 at most; one that has left its queue in the meantime is not changed
--
-- Reply: how many deliveries have failed.
local firstRing, retryRing, ledger = KEYS[1], KEYS[2], KEYS[3]
local queue, retries, log, failures = KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local FIXED_KEYS, FIXED_ARGUMENTS, MOST, call = 7, 3, 500, redis.call
local endpoint, reason, firsts = ARGV[1], ARGV[2], tonumber(ARGV[3])
local count = #ARGV - FIXED_ARGUMENTS
assert(firsts and firsts <= count and count <= MOST and #KEYS == FIXED_KEYS + count, 'malformed arguments')
if count == 0 then return 0 end

-- Indices of those still in their queue; of the first attempts, as many as are at the head.
local indices, wanted, popped, due = {}, {}, 0, {}
for index = 1, firsts do wanted[ARGV[FIXED_ARGUMENTS + index]] = index end
for _, id in ipairs(firsts > 0 and call('LRANGE', queue, 0, firsts - 1) or {}) do
  if not wanted[id] then break end
  indices[#indices + 1], popped = wanted[id], popped + 1
end
for index = firsts + 1, count do
  local id = ARGV[FIXED_ARGUMENTS + index]
  if call('ZSCORE', retries, id) then indices[#indices + 1], due[#due + 1] = index, id end
end
local firstsLeft, retriesLeft = call('LLEN', queue) - popped, call('ZCARD', retries) - #due

-- A delivery that has expired, 30 days after its creation, has failed as well.
local failed, rows = #indices, {}
for _, index in ipairs(indices) do
  local delivery, id = KEYS[FIXED_KEYS + index], ARGV[FIXED_ARGUMENTS + index]
  if call('EXISTS', delivery) == 1 then
    call('HSET', delivery, 's', 'failed', 'd', '', 'r', reason)
    local created = call('ZSCORE', log, id)
    if created then rows[#rows + 1], rows[#rows + 2] = created, id end
  end
end
if #rows > 0 then
  call('ZADD', failures, unpack(rows))
  call('PEXPIRE', failures, call('PTTL', log))
end
if failed > 0 then call('HINCRBY', ledger, 'webhook:failed', failed) end
if popped > 0 then call('LPOP', queue, popped) end
if #due > 0 then call('ZREM', retries, unpack(due)) end
if firstsLeft == 0 then call('ZREM', firstRing, endpoint) end
if retriesLeft == 0 then call('ZREM', retryRing, endpoint) end
return failed
