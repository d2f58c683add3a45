#!lua
-- Claims the label of (channel, carrier, reference) before the carrier is called.
--
-- KEYS[1]  string: id of the label that has the claim
-- KEYS[2]  counter of label ids in this partition
-- ARGV[1]  hash tag of the partition; the label's own key is built from it
-- ARGV[2]  partition number    ARGV[3]  number of partitions
-- ARGV[4]  who claims          ARGV[5]  milliseconds after which a claimant without an outcome counts as gone
-- ARGV[6]  milliseconds that a label is kept
--
-- Reply: {what, id}; what is "new" (call the carrier), "made" (read the label), "busy" (somebody is at it) or
-- "unsure" (claimed, but an earlier call may have reached the carrier: ask it before calling again).
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local name = redis.call('GET', KEYS[1])
if not name then
  name = string.format('%d', redis.call('INCR', KEYS[2]) * tonumber(ARGV[3]) + tonumber(ARGV[2]))
  redis.call('SET', KEYS[1], name, 'PX', ARGV[6])
  redis.call('HSET', ARGV[1] .. ':lb:' .. name, 'by', ARGV[4], 'since', nowMs)
  redis.call('PEXPIRE', ARGV[1] .. ':lb:' .. name, ARGV[6])
  return { 'new', tonumber(name) }
end
local label = ARGV[1] .. ':lb:' .. name
local fields = redis.call('HMGET', label, 'd', 'by', 'since')
if fields[1] then return { 'made', tonumber(name) } end
if fields[2] and nowMs - tonumber(fields[3] or 0) < tonumber(ARGV[5]) then return { 'busy', tonumber(name) } end
redis.call('HSET', label, 'by', ARGV[4], 'since', nowMs)
return { 'unsure', tonumber(name) }
