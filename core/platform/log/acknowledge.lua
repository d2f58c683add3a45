#!lua flags=allow-oom
-- Acknowledges entries of a log, counts what stood in them as done, and keeps what failed of them for its next try, in one
-- step. Entries that another process has acknowledged are neither counted nor kept twice. Runs with full memory too: it records
-- finished work, and only acknowledged entries can be trimmed.
--
-- KEYS[1]  log (stream)    KEYS[2]  counts of the log (hash): `logged`, and by group what is done
-- KEYS[3]  what waits for its next try in the group (sorted set by when it is due, milliseconds)
-- KEYS[4]  the same by the time of its entry (sorted set)
-- ARGV[1]  group    ARGV[2]  milliseconds until the next try    ARGV[3]  number of entries
-- then for each entry two: its id, how many stood in it; then for each failure two: the id of its entry, its text
--
-- Reply: 1.
local call, acknowledged, done, delay, last = redis.call, {}, 0, ARGV[2] + 0, 3 + 2 * ARGV[3]
assert(last >= 3 and last <= #ARGV and (#ARGV - last) % 2 == 0, 'an argument too few')
for at = 4, #ARGV, 2 do assert(string.match(ARGV[at], '^%d+%-%d+$'), 'id of an entry') end
for at = 5, last, 2 do assert(string.match(ARGV[at], '^%d+$'), 'how many stood in an entry') end
for at = 4, last, 2 do
  if call('XACK', KEYS[1], ARGV[1], ARGV[at]) == 1 then
    acknowledged[ARGV[at]], done = true, done + ARGV[at + 1]
  end
end
if done > 0 then call('HINCRBY', KEYS[2], ARGV[1], done) end
if #ARGV == last then return 1 end
local time = call('TIME')
local due = time[1] * 1000 + math.floor(time[2] / 1000) + delay
for at = last + 1, #ARGV, 2 do
  if acknowledged[ARGV[at]] then
    call('ZADD', KEYS[3], due, ARGV[at + 1])
    call('ZADD', KEYS[4], string.match(ARGV[at], '^%d+'), ARGV[at + 1])
  end
end
return 1
