#!lua flags=allow-oom
-- Settles attempts, each once: the work is done, waits for its next attempt, or becomes a dead letter. Runs with full memory
-- too: it records what has happened, and deletes as much as it adds.
--
-- KEYS[1]  what waits for its next try in the group (sorted set by when it is due, milliseconds)
-- KEYS[2]  the same by the time of its entry (sorted set)    KEYS[3]  dead letters of the log (stream)
-- ARGV[1]  key of the log    ARGV[2]  group
-- ARGV[3]  dead letters the log keeps; beyond that, final failures stay in retry    ARGV[4]  milliseconds until their next attempt
-- then for each four: its text; its text for the next try, '' when there is none; milliseconds until then; why it failed for
--   the last time, '' when it has not
--
-- No key is touched after it was emptied: Redis would refuse that while the key's slot migrates.
--
-- Reply: for each 1 = settled, 2 = it waits, since the log is full of dead letters, 0 = another process has settled it.
local limit, waitMs = tonumber(ARGV[3]), tonumber(ARGV[4])
assert(#ARGV % 4 == 0 and limit and waitMs, 'four for each try')
local call, reply, settled = redis.call, {}, {}
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local capacity = limit - call('XLEN', KEYS[3])
for at = 5, #ARGV, 4 do
  local text, again, due, reason = ARGV[at], ARGV[at + 1], now + ARGV[at + 2], ARGV[at + 3]
  local kept = reason ~= '' and cjson.decode(text)
  assert(not kept or (type(kept.id) == 'string' and type(kept.entry) == 'string'), 'a text')
  local entered = not settled[text] and call('ZSCORE', KEYS[2], text)
  local waits = entered and kept and capacity <= 0
  if entered then
    settled[text] = {again = again, due = due, entered = entered, kept = kept, reason = reason, waits = waits}
    if kept and not waits then capacity = capacity - 1 end
  end
  reply[#reply + 1] = waits and 2 or (entered and 1 or 0)
end
for text, one in pairs(settled) do
  if one.waits then call('ZADD', KEYS[1], now + waitMs, text) end
  if not one.waits and one.again ~= '' then
    call('ZADD', KEYS[1], one.due, one.again)
    call('ZADD', KEYS[2], one.entered, one.again)
  end
  if one.kept and not one.waits then
    call('XADD', KEYS[3], '*', 'log', ARGV[1], 'group', ARGV[2], 'id', one.kept.id, 'reason', one.reason, 'entry', one.kept.entry)
  end
end
for text, one in pairs(settled) do
  if not one.waits then
    call('ZREM', KEYS[1], text)
    call('ZREM', KEYS[2], text)
  end
end
return reply
