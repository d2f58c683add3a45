-- Claims eventIds and appends their events to the event log, in one step.
--
-- KEYS[1]  event log (stream)
-- KEYS[2]  ledger (hash): `accepted:<courier>` grows by the claims, `duplicate:<courier>` by the known ids, and
--          `received:<courier>` by both
-- KEYS[3…] for each event, g bucket keys (sets of integers), current generation first
-- ARGV[1]  high-water mark of the log, entries
-- ARGV[2]  seconds a bucket of the current generation lives
-- ARGV[3]  g, the number of generations
-- ARGV[4]  courier code, '' for a mere question that the ledger does not count
-- ARGV[5…] for each event: the id as a 64-bit integer, and its log entry, or '' to look without claiming
--
-- Reply: for each event 1 = claimed and appended, 0 = the id is known, 2 = not known (only looked at);
-- an empty list, and nothing done, when the log is over its mark.
local log, ledger = KEYS[1], KEYS[2]
if redis.call('XLEN', log) >= tonumber(ARGV[1]) then return {} end
local ttl, generations, courier = ARGV[2], tonumber(ARGV[3]), ARGV[4]
local reply, claimed, known = {}, 0, 0
local key = 3
for at = 5, #ARGV, 2 do
  local id, entry = ARGV[at], ARGV[at + 1]
  local current = KEYS[key]
  local seen = 0
  for older = key + 1, key + generations - 1 do
    if redis.call('SISMEMBER', KEYS[older], id) == 1 then seen = 1 break end
  end
  if seen == 1 then
    reply[#reply + 1] = 0
    known = known + 1
  elseif entry == '' then
    local present = redis.call('SISMEMBER', current, id)
    reply[#reply + 1] = present == 1 and 0 or 2
    known = known + present
  elseif redis.call('SADD', current, id) == 1 then
    if redis.call('SCARD', current) == 1 then redis.call('EXPIRE', current, ttl) end
    redis.call('XADD', log, '*', 'e', entry)
    reply[#reply + 1] = 1
    claimed = claimed + 1
  else
    reply[#reply + 1] = 0
    known = known + 1
  end
  key = key + generations
end
if courier ~= '' and claimed + known > 0 then
  redis.call('HINCRBY', ledger, 'received:' .. courier, claimed + known)
  if claimed > 0 then redis.call('HINCRBY', ledger, 'accepted:' .. courier, claimed) end
  if known > 0 then redis.call('HINCRBY', ledger, 'duplicate:' .. courier, known) end
end
return reply
