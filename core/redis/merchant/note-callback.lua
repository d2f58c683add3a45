#!lua flags=allow-oom
-- Records what came of the completion call of an ended import job; the first outcome counts. Runs with full memory too: the
-- job would call again otherwise.
--
-- KEYS[1]  job (hash)
-- ARGV[1]  outcome (JSON)
--
-- Reply: 1 = recorded, 0 = it was recorded before or the job is gone.
assert(#ARGV == 1 and ARGV[1] ~= '', 'an outcome')
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
return redis.call('HSETNX', KEYS[1], 'callback', ARGV[1])
