#!lua
-- Claims a stock release, so that a release that is requested twice is sent once. Releases are stored as JSON, without their id.
--
-- KEYS[1]  releases of the shipment (hash: release id -> JSON)
-- KEYS[2]  counter of releases
-- ARGV[1]  the release (JSON with `digest` and `askedAtMs`, without an outcome)
-- ARGV[2]  milliseconds after which a release without an outcome is sent again
-- ARGV[3]  releases a shipment keeps; the oldest are deleted
-- ARGV[4]  partition    ARGV[5]  stride: ids are `n * stride + partition`, so that no two are equal
--
-- Reply: { 'send', id } when the carrier is to be called: under a new id, or under that of an earlier attempt whose outcome is
-- unknown; { 'answered', id, JSON } when it has accepted the same release before; { 'busy', id } while another call is in progress.
local isJson, asked = pcall(cjson.decode, ARGV[1])
local patienceMs, keep = tonumber(ARGV[2]), tonumber(ARGV[3])
local partition, stride = tonumber(ARGV[4]), tonumber(ARGV[5])
local askedAtMs, digest = isJson and tonumber(asked.askedAtMs), isJson and asked.digest
if not (askedAtMs and patienceMs and keep and partition and stride and type(digest) == 'string') then
  return redis.error_reply('ERR claim-release: wrong arguments')
end

local TAKEN = { ok = true, pending = true }
local UNKNOWN = { unreachable = true, unreadable = true }

local ids, same, sameId, sameText = {}, nil, nil, nil
local kept = redis.call('HGETALL', KEYS[1])
for at = 1, #kept, 2 do
  local id, release = tonumber(kept[at]), cjson.decode(kept[at + 1])
  ids[#ids + 1] = id
  if release.digest == digest and (not sameId or id > sameId) then
    same, sameId, sameText = release, id, kept[at + 1]
  end
end
if same then
  local outcome = type(same.outcome) == 'string' and same.outcome or nil
  if TAKEN[outcome] then return { 'answered', sameId, sameText } end
  if not outcome and askedAtMs - tonumber(same.askedAtMs) < patienceMs then return { 'busy', sameId } end
  if not outcome or UNKNOWN[outcome] then
    redis.call('HSET', KEYS[1], sameId, ARGV[1])
    return { 'send', sameId }
  end
end
local id = redis.call('INCR', KEYS[2]) * stride + partition
redis.call('HSET', KEYS[1], id, ARGV[1])
table.sort(ids)
for at = 1, #ids + 1 - keep do redis.call('HDEL', KEYS[1], ids[at]) end
return { 'send', id }
