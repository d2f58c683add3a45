#!lua
-- Marks eventIds as seen without appending anything: for set-aside events once they are applied.
--
-- KEYS[i]  bucket of the current generation
-- ARGV[1]  seconds a bucket lives
-- ARGV[i+1] the id as a 64-bit integer
--
-- Reply: how many ids were new.
local new = 0
for at = 1, #KEYS do
  new = new + redis.call('SADD', KEYS[at], ARGV[at + 1])
  if redis.call('SCARD', KEYS[at]) == 1 then redis.call('EXPIRE', KEYS[at], ARGV[1]) end
end
return new
