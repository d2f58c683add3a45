#!lua flags=allow-oom
-- Records what came of the callback of a finished import job; the first outcome counts. Runs with full memory too: the
-- callback would be sent again otherwise.
--
-- KEYS[1]  job (hash)    KEYS[2]  callbacks of the channel that wait (set)
-- ARGV[1]  job id    ARGV[2]  outcome (JSON)
--
-- Reply: 1 = recorded, 0 = it was recorded before or the job is gone.
assert(#ARGV == 2 and ARGV[1] ~= '' and ARGV[2] ~= '', 'a job and an outcome')
redis.call('SREM', KEYS[2], ARGV[1])
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
return redis.call('HSETNX', KEYS[1], 'callback', ARGV[2])
