#!lua
-- Keeps what a stock release was asked for and what came of it; the oldest of the shipment go.
--
-- KEYS[1]  releases of the shipment (hash: id -> JSON)
-- KEYS[2]  string: id that the same request gets (claim-id.lua)
-- ARGV[1]  release id    ARGV[2]  the release (JSON)    ARGV[3]  releases kept
-- ARGV[4]  milliseconds that the same request still gets this id; 0 = the next one gets another, '' = as it was
--
-- Reply: how many are kept.
local id, release, most, claimMs = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
if not string.find(id, '^%d+$') or not release or not most or (ARGV[4] ~= '' and not claimMs) then
  return redis.error_reply('ERR keep-release: wrong arguments')
end
redis.call('HSET', KEYS[1], id, release)
local ids = redis.call('HKEYS', KEYS[1])
table.sort(ids, function(one, other) return tonumber(one) < tonumber(other) end)
for at = 1, #ids - most do redis.call('HDEL', KEYS[1], ids[at]) end
if claimMs and redis.call('GET', KEYS[2]) == id then
  if claimMs == 0 then redis.call('DEL', KEYS[2]) else redis.call('PEXPIRE', KEYS[2], ARGV[4]) end
end
return math.min(#ids, most)
