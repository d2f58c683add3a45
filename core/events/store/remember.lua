#!lua
-- Marks eventIds as seen without appending anything: for parked events once they are applied.
--
-- KEYS[i]  bucket of the current generation
-- ARGV[1]  seconds a bucket lives
-- ARGV[i+1] the id as a 64-bit integer
--
-- Reply: how many ids were new.
local lives = assert(tonumber(ARGV[1]), 'malformed arguments')
assert(#ARGV == #KEYS + 1, 'one id belongs to each bucket')
for at = 1, #KEYS do assert(string.match(ARGV[at + 1], '^%-?%d+$'), 'an id is no integer') end
local new = 0
for at = 1, #KEYS do
  new = new + redis.call('SADD', KEYS[at], ARGV[at + 1])
  if redis.call('SCARD', KEYS[at]) == 1 then redis.call('EXPIRE', KEYS[at], lives) end
end
return new
