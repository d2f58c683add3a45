#!lua
-- Begins a request under its idempotency key, unless it has been carried out or is being carried out.
--
-- KEYS[1]  record of the key (hash)
-- KEYS[2]  keys of the caller (sorted set by when they are forgotten, service clock, milliseconds); absent = they are not counted
-- ARGV[1]  fingerprint of the request    ARGV[2]  owner: who carries it out now    ARGV[3]  service clock, milliseconds
-- ARGV[4]  how long the owner may take, milliseconds    ARGV[5]  how long the key is remembered, milliseconds
-- ARGV[6]  digest of the key    ARGV[7]  keys of the caller that are remembered
--
-- Reply: {'begun'}, {'running'}, {'other'} = the key was used for another request, {'answered', answer}, or {'full', when a key
-- of the caller is forgotten}.
for at = 3, 5 do assert(string.match(ARGV[at] or '', '^%d+$'), 'a number of milliseconds') end
assert(#ARGV == 7 and ARGV[1] ~= '' and ARGV[2] ~= '' and ARGV[6] ~= '', 'a fingerprint, an owner, times and a key')
local now, life, most = ARGV[3] + 0, ARGV[5] + 0, ARGV[7] + 0
local held = redis.call('HMGET', KEYS[1], 'fingerprint', 'until', 'leased', 'answer')
local isKnown = held[1] and now < held[2] + 0
if isKnown then
  if held[1] ~= ARGV[1] then return {'other'} end
  if held[4] then return {'answered', held[4]} end
  if now < held[3] + 0 then return {'running'} end
end
if KEYS[2] and not isKnown then
  local first = redis.call('ZRANGE', KEYS[2], -most, -most, 'WITHSCORES')
  if first[2] and now < first[2] + 0 then return {'full', first[2]} end
end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'fingerprint', ARGV[1], 'owner', ARGV[2], 'leased', now + ARGV[4], 'until', now + life)
redis.call('PEXPIRE', KEYS[1], life)
if KEYS[2] then
  redis.call('ZADD', KEYS[2], now + life, ARGV[6])
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
  redis.call('PEXPIRE', KEYS[2], life)
end
return {'begun'}
