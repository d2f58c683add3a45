#!lua flags=allow-oom
-- Releases a claim and stores its outcome, if it is still the claimant's. Runs with full memory too: the carrier has made the
-- label, and no label is claimed then.
--
-- KEYS[1]  string: id of the label that has the claim
-- KEYS[2]  hash of the label
-- KEYS[3]  sorted set of the channel's labels by the time they were made
-- ARGV[1]  who claimed
-- ARGV[2]  "made" (keep the label), "free" (the carrier was surely not called) or "unsure" (it may have been)
-- ARGV[3]  record (JSON), ARGV[4] labels (JSON), ARGV[5] label id, ARGV[6] when it was made (ms since 1970), ARGV[7] milliseconds that
--          a label is kept; with "made" only
--
-- Reply: 1, or 0 when the claim has gone to somebody else.
local who, outcome, record, labels = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local id, madeAtMs, keptMs = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
local isMade = outcome == 'made' and record and labels and id and madeAtMs and keptMs
if not isMade and outcome ~= 'free' and outcome ~= 'unsure' then
  return redis.error_reply('ERR settle-label: wrong arguments')
end
if redis.call('HGET', KEYS[2], 'by') ~= who then return 0 end
if isMade then
  redis.call('HSET', KEYS[2], 'd', record, 'l', labels)
  redis.call('HDEL', KEYS[2], 'by', 'since')
  redis.call('ZADD', KEYS[3], madeAtMs, id)
  redis.call('PEXPIRE', KEYS[3], keptMs)
  local last = string.format('%d', madeAtMs - keptMs)
  local gone = redis.call('ZRANGE', KEYS[3], '-inf', last, 'BYSCORE', 'LIMIT', 0, 100)
  if #gone > 0 then redis.call('ZREM', KEYS[3], unpack(gone)) end
elseif outcome == 'free' then
  redis.call('DEL', KEYS[1], KEYS[2])
else
  redis.call('HDEL', KEYS[2], 'by', 'since')
end
return 1
