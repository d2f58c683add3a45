#!lua flags=allow-oom
-- Ends an import job that is still running, and queues its callback; the first outcome counts. Runs with full memory too: its
-- items are deleted.
--
-- KEYS[1]  job (hash)    KEYS[2]  items (hash)    KEYS[3]  unfinished jobs of the channel (set)
-- KEYS[4]  callbacks of the channel that wait (set)    KEYS[5]  waiting callbacks (sorted set by due time)
-- ARGV[1]  job id    ARGV[2]  status    ARGV[3]  error, empty = none    ARGV[4]  service clock, milliseconds
-- ARGV[5]  callbacks of the channel that may wait, 0 = the job has none    ARGV[6]  seconds the job is kept
-- ARGV[7]  outcome of a callback beyond them (JSON)
--
-- Reply: 1 = ended, 0 = it had ended before or is gone.
assert(#ARGV == 7 and tonumber(ARGV[4]) and ARGV[7] ~= '', 'a job, a status, an error, a time and an outcome')
assert(string.match(ARGV[5], '^%d+$') and ARGV[6] + 0 > 0, 'how many callbacks, and how long')
local job, most = ARGV[1], ARGV[5] + 0
redis.call('SREM', KEYS[3], job)
redis.call('UNLINK', KEYS[2])
local held = redis.call('HMGET', KEYS[1], 'status', 'callback')
local isRunning = held[1] == 'processing'
if isRunning then redis.call('HSET', KEYS[1], 'status', ARGV[2], 'error', ARGV[3], 'completedAtMs', ARGV[4]) end
-- Also after an older version has ended the job and died before it called.
if held[1] and not held[2] and most > 0 then
  if redis.call('SCARD', KEYS[4]) < most or redis.call('SISMEMBER', KEYS[4], job) == 1 then
    redis.call('SADD', KEYS[4], job)
    redis.call('EXPIRE', KEYS[4], ARGV[6])
    redis.call('ZADD', KEYS[5], 'NX', ARGV[4], job)
  else
    redis.call('HSET', KEYS[1], 'callback', ARGV[7])
  end
end
return isRunning and 1 or 0
