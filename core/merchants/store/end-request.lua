#!lua flags=allow-oom
-- Records the answer of a request under its idempotency key, or forgets the key. Runs with full memory too: the request has
-- been carried out. Who has lost the lease changes nothing.
--
-- KEYS[1]  record of the key (hash)    KEYS[2]  keys of the caller (sorted set); absent = they are not counted
-- ARGV[1]  owner    ARGV[2]  answer, empty = forget the key    ARGV[3]  digest of the key
--
-- Reply: 1 = recorded or forgotten, 0 = somebody else has the lease or the key is gone.
assert(#ARGV == 3 and ARGV[1] ~= '' and ARGV[3] ~= '', 'an owner, an answer and a key')
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
  if KEYS[2] then redis.call('ZREM', KEYS[2], ARGV[3]) end
else
  redis.call('HSET', KEYS[1], 'answer', ARGV[2])
  redis.call('HDEL', KEYS[1], 'owner')
end
return 1
