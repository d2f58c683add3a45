#!lua
-- Saves the progress of a remap, if the process that runs it still has the lease.
--
-- KEYS[1]  lease of the remaps (string: its owner)    KEYS[2]  the remap (hash)
-- KEYS[3]  remaps that are not done (sorted set)
-- ARGV[1]  owner    ARGV[2]  id    ARGV[3]  progress (JSON); empty = unchanged
-- ARGV[4]  when it was done, milliseconds; empty = it is not
--
-- Reply: 1 = saved, 0 = the lease was lost; a remap that was deleted in the meantime stays deleted.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('ZREM', KEYS[3], ARGV[2])
  return 1
end
if ARGV[3] ~= '' then redis.call('HSET', KEYS[2], 'progress', ARGV[3]) end
if ARGV[4] ~= '' then
  redis.call('HSET', KEYS[2], 'state', 'done', 'finishedAtMs', ARGV[4])
  redis.call('ZREM', KEYS[3], ARGV[2])
end
return 1
