#!lua flags=allow-oom
-- Voids a label that no transmission holds, and frees its reference for another one. Runs with full memory too, since the carrier
-- has voided it: the sheets go.
--
-- KEYS[1]  hash of the label
-- KEYS[2…] strings: ids of the labels that have the claims of its reference
-- ARGV[1]  label id    ARGV[2]  milliseconds since 1970: now
--
-- Reply: "voided" (also when it was before), "confirmed" or "missing".
local id, nowMs = ARGV[1], ARGV[2]
if #KEYS < 2 or not string.find(id or '', '^%d+$') or not string.find(nowMs or '', '^%d+$') then
  return redis.error_reply('ERR void-label: wrong arguments')
end
local fields = redis.call('HMGET', KEYS[1], 'd', 'tx', 'vd')
if not fields[1] then return 'missing' end
if fields[2] then return 'confirmed' end
if not fields[3] then
  redis.call('HSET', KEYS[1], 'vd', nowMs)
  redis.call('HDEL', KEYS[1], 'l')
end
for at = 2, #KEYS do
  if redis.call('GET', KEYS[at]) == id then redis.call('DEL', KEYS[at]) end
end
return 'voided'
