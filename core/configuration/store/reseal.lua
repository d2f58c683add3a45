#!lua
-- Replaces fields of a configuration entity, all of them or none, if they have not changed since they were read.
--
-- KEYS[1]  the entity (hash)
-- ARGV     field, text that was read, new text; and so on, at most three times
--
-- Reply: 1 = replaced, 0 = another writer was faster.
for i = 1, #ARGV, 3 do
  if redis.call('HGET', KEYS[1], ARGV[i]) ~= ARGV[i + 1] then return 0 end
end
for i = 1, #ARGV, 3 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 2]) end
return 1
