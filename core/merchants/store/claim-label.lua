#!lua
-- Claims the label of (channel, carrier, reference) before the carrier is called.
--
-- KEYS[1]  string: id of the label that has the claim
-- KEYS[2]  hash of the label ARGV[1]
-- ARGV[1]  id that has the claim, or a new one if there is none      ARGV[2]  1 = the id is new
-- ARGV[3]  who claims          ARGV[4]  milliseconds after which a claim without an outcome expires
-- ARGV[5]  milliseconds that a label is kept
--
-- Reply: "new" (call the carrier), "made" (read the label), "busy" (another call is in progress), "unsure" (claimed, but an
-- earlier call may have reached the carrier: ask it before calling again) or "other" (the claim differs from what the
-- caller read, and nothing is done).
local id, isNew, who = ARGV[1], ARGV[2] == '1', ARGV[3]
local goneAfterMs, keptMs = tonumber(ARGV[4]), tonumber(ARGV[5])
if not string.find(id, '^%d+$') or who == '' or not goneAfterMs or not keptMs then
  return redis.error_reply('ERR claim-label: wrong arguments')
end
local time = redis.call('TIME')
local nowMs = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))
local holder = redis.call('GET', KEYS[1])
if not holder and isNew then
  redis.call('SET', KEYS[1], id, 'PX', ARGV[5])
  redis.call('HSET', KEYS[2], 'by', who, 'since', nowMs)
  redis.call('PEXPIRE', KEYS[2], ARGV[5])
  return 'new'
end
if holder ~= id then return 'other' end
local fields = redis.call('HMGET', KEYS[2], 'd', 'by', 'since')
if fields[1] then return 'made' end
if fields[2] and nowMs - fields[3] < goneAfterMs then return 'busy' end
redis.call('HSET', KEYS[2], 'by', who, 'since', nowMs)
return 'unsure'
