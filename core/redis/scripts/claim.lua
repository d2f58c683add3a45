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
-- ARGV[5]  the events, two lines each: `<bucket of each generation …> <id as a 64-bit integer>`, and the event for the log,
--          which is empty to look without claiming
-- ARGV[6…] what the names of the buckets begin with, by generation, the current one first
--
-- Reply: one digit for each event: 1 = claimed and appended, 0 = the id is known, 2 = not known (only looked at);
-- an empty text, and nothing done, when the log is over its mark.
local log, ledger, counts, hours, logCounts, retries = unpack(KEYS)
local call, find, sub = redis.call, string.find, string.sub
local logged, applied = unpack(call('HMGET', logCounts, 'logged', 'track'))
local waiting = (logged or 0) - (applied or 0) + call('ZCARD', retries)
if waiting >= tonumber(ARGV[1]) then return '' end
local ttl, courier, hour, events = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local generations = #ARGV - 5
local reply, lines, known, buckets, at = {}, {}, 0, {}, 1
while at <= #events do
  for generation = 1, generations do
    local stop = find(events, ' ', at, true)
    buckets[generation] = ARGV[5 + generation] .. sub(events, at, stop - 1)
    at = stop + 1
  end
  local first = find(events, '\n', at, true)
  local id = sub(events, at, first - 1)
  local last = find(events, '\n', first + 1, true)
  at = last + 1
  local current, isKnown = buckets[1], false
  for older = 2, generations do
    if call('SISMEMBER', buckets[older], id) == 1 then isKnown = true break end
  end
  local outcome
  if isKnown then
    outcome = 0
  elseif last == first + 1 then
    outcome = call('SISMEMBER', current, id) == 1 and 0 or 2
  else
    outcome = call('SADD', current, id)
  end
  if outcome == 1 then
    call('EXPIRE', current, ttl, 'NX')
    lines[#lines + 1] = sub(events, first + 1, last - 1)
  elseif outcome == 0 then
    known = known + 1
  end
  reply[#reply + 1] = outcome
end
local claimed = #lines
if claimed > 0 then
  call('HINCRBY', logCounts, 'logged', claimed)
  call('XADD', log, '*', 'e', table.concat(lines, '\n'))
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
