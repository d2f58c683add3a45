#!lua
-- Claims eventIds and appends their events to the event log, in one step and one entry.
--
-- KEYS[1]  event log (stream)
-- KEYS[2]  ledger (hash): `accepted:<courier>` grows by the claims, `duplicate:<courier>` by the known ids, and
--          `received:<courier>` by both
-- KEYS[3]  counts of the hour (hash)
-- KEYS[4]  hours that have counts (set)
-- KEYS[5]  counts of the log (hash): `logged` grows by the claims, `track` is what has been applied of them
-- KEYS[6]  what waits for its next try (sorted set)
-- ARGV[1]  high-water mark: events that may wait to be applied
-- ARGV[2]  seconds a bucket of the current generation lives
-- ARGV[3]  courier code, '' for a mere question that is not counted
-- ARGV[4]  the hour
-- ARGV[5]  for each event a line: `<bucket of each generation …> <id as a 64-bit integer> <bytes of its event>`, 0 bytes to
--          look without claiming
-- ARGV[6]  the events for the log, a line each
-- ARGV[7…] what the names of the buckets begin with, by generation, the current one first
--
-- Events go on as they came, and are cut out only where some are not claimed: Redis hashes every byte of a text that a script
-- makes.
--
-- Reply: one digit for each event: 1 = claimed and appended, 0 = the id is known, 2 = not known (only looked at);
-- an empty text, and nothing done, when the log is over its mark.
local log, ledger, counts, hours, logCounts, retries = unpack(KEYS)
local call, find, sub = redis.call, string.find, string.sub
local logged, applied = unpack(call('HMGET', logCounts, 'logged', 'track'))
local waiting = (logged or 0) - (applied or 0) + call('ZCARD', retries)
if waiting >= tonumber(ARGV[1]) then return '' end
local ttl, courier, hour, ids, events = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local generations = #ARGV - 6
local reply, buckets, at, known = {}, {}, 1, 0
-- Claimed events: how many, and where those stand in the text that have not been cut out yet.
local claimed, parts, from, to = 0, {}, 1, 0
while at <= #ids do
  for generation = 1, generations do
    local stop = find(ids, ' ', at, true)
    buckets[generation] = ARGV[6 + generation] .. sub(ids, at, stop - 1)
    at = stop + 1
  end
  local stop = find(ids, ' ', at, true)
  local id = sub(ids, at, stop - 1)
  at = find(ids, '\n', stop + 1, true)
  local bytes = tonumber(sub(ids, stop + 1, at - 1))
  at = at + 1
  local current, isKnown = buckets[1], false
  for older = 2, generations do
    if call('SISMEMBER', buckets[older], id) == 1 then isKnown = true break end
  end
  local outcome
  if isKnown then
    outcome = 0
  elseif bytes == 0 then
    outcome = call('SISMEMBER', current, id) == 1 and 0 or 2
  else
    outcome = call('SADD', current, id)
  end
  if outcome == 1 then
    call('EXPIRE', current, ttl, 'NX')
    claimed = claimed + 1
  else
    if bytes > 0 then
      if to >= from then parts[#parts + 1] = sub(events, from, to) end
      from = to + bytes + 1
    end
    if outcome == 0 then known = known + 1 end
  end
  to = to + bytes
  reply[#reply + 1] = outcome
end
if claimed > 0 then
  if from > 1 then
    if to >= from then parts[#parts + 1] = sub(events, from, to) end
    events = table.concat(parts)
  end
  call('HINCRBY', logCounts, 'logged', claimed)
  call('XADD', log, '*', 'e', events)
end
if courier ~= '' and claimed + known > 0 then
  call('SADD', hours, hour)
  call('HINCRBY', ledger, 'received:' .. courier, claimed + known)
  for outcome, number in pairs({ACCEPTED = claimed, DUPLICATE = known}) do
    if number > 0 then
      call('HINCRBY', ledger, string.lower(outcome) .. ':' .. courier, number)
      call('HINCRBY', counts, cjson.encode({courier, outcome, ''}), number)
    end
  end
end
return table.concat(reply)
