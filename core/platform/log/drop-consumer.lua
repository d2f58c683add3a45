#!lua flags=allow-oom
-- Forgets a consumer that has nothing pending: one that resumes in the meantime keeps what it has read. Runs with
-- full memory too: it only frees memory.
--
-- KEYS[1]  log (stream)
-- ARGV[1]  group    ARGV[2]  consumer
--
-- Reply: 1 = forgotten, 0 = it holds entries.
assert(#ARGV == 2, 'a group and a consumer')
if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) > 0 then return 0 end
redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
return 1
