-- Claims eventIds and appends their events to the event log, in one step and one entry.
--
-- KEYS[1]  event log (stream)
-- KEYS[2]  ledger (hash): `accepted:<courier>` grows by the claims, `duplicate:<courier>` by the known ids,
--          `received:<courier>` by both, and `logged` by what the log has had so far
-- KEYS[3]  counts of the hour (hash)
-- KEYS[4]  hours that have counts (set)
-- ARGV[1]  high-water mark of the log, events    ARGV[2]  events an entry holds at most
-- ARGV[3]  seconds a bucket of the current generation lives
-- ARGV[4]  courier code, '' for a mere question that is not counted
-- ARGV[5]  the hour
-- ARGV[6]  the events, two lines each: `<bucket of each generation …> <id as a 64-bit integer>`, and the event for the log,
--          which is empty to look without claiming
-- ARGV[7…] what the names of the buckets begin with, by generation, the current one first
--
-- Reply: one digit for each event: 1 = claimed and appended, 0 = the id is known, 2 = not known (only looked at);
-- an empty text, and nothing done, when the log is over its mark.
local log, ledger, counts, hours = unpack(KEYS)
local call, find, sub = redis.call, string.find, string.sub
local mark, most = tonumber(ARGV[1]), tonumber(ARGV[2])
-- Counted only where it may have come to the mark.
if call('XLEN', log) * most >= mark then
  local first = call('XRANGE', log, '-', '+', 'COUNT', 1)[1]
  local fields = first and first[2] or {}
  local gone = fields[3] == 'k' and fields[2] - fields[4] or 0
  if first and call('HGET', ledger, 'logged') - gone >= mark then return '' end
end
local ttl, courier, hour, events = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local generations = #ARGV - 6
local reply, lines, known, buckets, at = {}, {}, 0, {}, 1
while at <= #events do
  for generation = 1, generations do
    local stop = find(events, ' ', at, true)
    buckets[generation] = ARGV[6 + generation] .. sub(events, at, stop - 1)
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
  local logged = call('HINCRBY', ledger, 'logged', claimed)
  call('XADD', log, '*', 'n', logged, 'k', claimed, 'e', table.concat(lines, '\n'))
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
