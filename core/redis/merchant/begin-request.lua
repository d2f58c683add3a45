#!lua
-- Begins a request under its idempotency key, unless it has been carried out or is being carried out.
--
-- KEYS[1]  record of the key (hash)
-- ARGV[1]  fingerprint of the request    ARGV[2]  owner: who carries it out now    ARGV[3]  service clock, milliseconds
-- ARGV[4]  how long the owner may take, milliseconds    ARGV[5]  how long the key is remembered, milliseconds
--
-- Reply: {'begun'}, {'running'}, {'other'} = the key was used for another request, or {'answered', answer}.
for at = 3, 5 do assert(string.match(ARGV[at] or '', '^%d+$'), 'a number of milliseconds') end
assert(#ARGV == 5 and ARGV[1] ~= '' and ARGV[2] ~= '', 'a fingerprint, an owner and times')
local now = ARGV[3] + 0
local held = redis.call('HMGET', KEYS[1], 'fingerprint', 'until', 'leased', 'answer')
if held[1] and now < held[2] + 0 then
  if held[1] ~= ARGV[1] then return {'other'} end
  if held[4] then return {'answered', held[4]} end
  if now < held[3] + 0 then return {'running'} end
end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'fingerprint', ARGV[1], 'owner', ARGV[2], 'leased', now + ARGV[4], 'until', now + ARGV[5])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return {'begun'}
