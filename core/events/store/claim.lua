#!lua
-- Claims eventIds and appends their events to the event log, in one step and one entry.
--
-- KEYS[1]  event log (stream)
-- KEYS[2]  ledger (hash): `accepted:<courier>` grows by the claims, `duplicate:<courier>` by the known ids,
--          `received:<courier>` by both, and `further:<courier>` by the shipments after the first that claimed events go to
-- KEYS[3]  counts of the hour (hash)
-- KEYS[4]  hours that have counts (set)
-- KEYS[5]  counts of the log (hash): `logged` grows by the claims, once for each shipment; `track` is what has been applied
-- KEYS[6]  what waits for its next try (sorted set)
-- KEYS[7…] for each event its bucket (set) in each generation that is checked, the current one first
-- ARGV[1]  high-water mark: events that may wait to be applied
-- ARGV[2]  seconds a bucket of the current generation lives
-- ARGV[3]  courier code, '' for a mere question that is not counted
-- ARGV[4]  the hour
-- ARGV[5]  generations that are checked
-- ARGV[6]  for each event a line: `<id as a 64-bit integer> <bytes of its event> <shipments it goes to>`, 0 bytes to look
--          without claiming
-- ARGV[7]  the events for the log, a line each
--
-- Events go on as they came, and are cut out only where some are not claimed: Redis hashes every byte of a text that a script
-- makes.
--
-- Reply: one digit for each event: 1 = claimed and appended, 0 = the id is known, 2 = not known (only looked at);
-- an empty text, and nothing done, when the log is over its mark.
local log, ledger, counts, hours, logCounts, retries = unpack(KEYS, 1, 6)
local call, sub = redis.call, string.sub
local mark, ttl, courier, hour, events = ARGV[1] + 0, ARGV[2], ARGV[3], ARGV[4], ARGV[7]
local generations, ids, sizes, shipments, count, total = ARGV[5] + 0, {}, {}, {}, 0, 0
-- Everything is parsed before the first write.
for id, bytes, goesTo in string.gmatch(ARGV[6], '(-?%d+) (%d+) (%d+)\n') do
  count = count + 1
  ids[count], sizes[count], shipments[count] = id, bytes + 0, goesTo + 0
  total = total + sizes[count]
end
assert(generations >= 1 and #KEYS == 6 + count * generations, 'buckets')
assert(total == #events and ttl + 0 > 0, 'bytes of the events or seconds of a bucket')

local logged, applied = unpack(call('HMGET', logCounts, 'logged', 'track'))
local waiting = (logged or 0) - (applied or 0) + call('ZCARD', retries)
if waiting >= mark then return '' end
local reply, known = {}, 0
-- Claimed events: how many, for how many shipments, and where those stand in the text that have not been cut out yet.
local claimed, routed, parts, from, to = 0, 0, {}, 1, 0
for event = 1, count do
  local id, bytes, at = ids[event], sizes[event], 7 + (event - 1) * generations
  local current, isKnown = KEYS[at], false
  for other = at + 1, at + generations - 1 do
    if call('SISMEMBER', KEYS[other], id) == 1 then isKnown = true break end
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
    claimed, routed = claimed + 1, routed + shipments[event]
  else
    if bytes > 0 then
      if to >= from then parts[#parts + 1] = sub(events, from, to) end
      from = to + bytes + 1
    end
    if outcome == 0 then known = known + 1 end
  end
  to = to + bytes
  reply[event] = outcome
end
if claimed > 0 then
  if from > 1 then
    if to >= from then parts[#parts + 1] = sub(events, from, to) end
    events = table.concat(parts)
  end
  call('HINCRBY', logCounts, 'logged', routed)
  call('XADD', log, '*', 'e', events)
end
if courier ~= '' and claimed + known > 0 then
  call('SADD', hours, hour)
  call('HINCRBY', ledger, 'received:' .. courier, claimed + known)
  if routed > claimed then call('HINCRBY', ledger, 'further:' .. courier, routed - claimed) end
  for outcome, number in pairs({ACCEPTED = claimed, DUPLICATE = known}) do
    if number > 0 then
      call('HINCRBY', ledger, string.lower(outcome) .. ':' .. courier, number)
      call('HINCRBY', counts, cjson.encode({courier, outcome, ''}), number)
    end
  end
end
return table.concat(reply)
