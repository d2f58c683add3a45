#!lua flags=allow-oom
-- Settles tries, each once: what was tried is done, waits for its next try, or stands among the dead letters. Runs with a full
-- memory too: it records what has happened, and what it adds it takes away elsewhere.
--
-- KEYS[1]  what waits for its next try in the group (sorted set by when it is due, milliseconds)
-- KEYS[2]  the same by the time of its entry (sorted set)    KEYS[3]  dead letters of the log (stream)
-- ARGV[1]  key of the log    ARGV[2]  group
-- ARGV[3]  dead letters the log keeps; past it what failed for the last time waits    ARGV[4]  milliseconds until it is tried then
-- then for each four: its text; its text for the next try, '' when there is none; milliseconds until then; why it failed for
--   the last time, '' when it has not
--
-- Reply: for each 1 = settled, 2 = it waits, since there are as many dead letters as may be, 0 = another process has settled it.
local call, reply = redis.call, {}
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local room = tonumber(ARGV[3]) - call('XLEN', KEYS[3])
for at = 5, #ARGV, 4 do
  local text, again, reason = ARGV[at], ARGV[at + 1], ARGV[at + 3]
  local entered = call('ZSCORE', KEYS[2], text)
  local isKept = entered and reason ~= '' and room <= 0
  if isKept then
    call('ZADD', KEYS[1], now + ARGV[4], text)
  elseif entered then
    call('ZREM', KEYS[1], text)
    call('ZREM', KEYS[2], text)
    if again ~= '' then
      call('ZADD', KEYS[1], now + ARGV[at + 2], again)
      call('ZADD', KEYS[2], entered, again)
    end
    if reason ~= '' then
      local kept = cjson.decode(text)
      call('XADD', KEYS[3], '*', 'log', ARGV[1], 'group', ARGV[2], 'id', kept.id, 'reason', reason, 'entry', kept.entry)
      room = room - 1
    end
  end
  reply[#reply + 1] = isKept and 2 or (entered and 1 or 0)
end
return reply
