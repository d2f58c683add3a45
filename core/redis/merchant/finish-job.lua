#!lua flags=allow-oom
-- Ends an import job that is still running; the first outcome counts. Runs with full memory too: its items are deleted.
--
-- KEYS[1]  job (hash)    KEYS[2]  items (hash)    KEYS[3]  unfinished jobs of the channel (set)
-- ARGV[1]  job id    ARGV[2]  status    ARGV[3]  error, empty = none    ARGV[4]  service clock, milliseconds
--
-- Reply: 1 = ended, 0 = it had ended before or is gone.
assert(#ARGV == 4 and tonumber(ARGV[4]), 'a job, a status, an error and a time')
redis.call('SREM', KEYS[3], ARGV[1])
redis.call('UNLINK', KEYS[2])
if redis.call('HGET', KEYS[1], 'status') ~= 'processing' then return 0 end
redis.call('HSET', KEYS[1], 'status', ARGV[2], 'error', ARGV[3], 'completedAtMs', ARGV[4])
return 1
