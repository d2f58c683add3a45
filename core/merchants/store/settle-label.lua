#!lua flags=allow-oom
-- Releases a claim and stores its outcome, if it is still the claimant's. Runs with full memory too: the carrier has made the
-- label, and no label is claimed then.
--
-- KEYS[1]  string: id of the label that has the claim
-- KEYS[2]  hash of the label
-- ARGV[1]  who claimed
-- ARGV[2]  "made" (keep the label), "free" (the carrier was surely not called) or "unsure" (it may have been)
-- ARGV[3]  record (JSON), ARGV[4] labels (JSON); with "made" only
--
-- Reply: 1, or 0 when the claim has gone to somebody else.
local who, outcome, record, labels = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local isMade = outcome == 'made' and record and labels
if not isMade and outcome ~= 'free' and outcome ~= 'unsure' then
  return redis.error_reply('ERR settle-label: wrong arguments')
end
if redis.call('HGET', KEYS[2], 'by') ~= who then return 0 end
if isMade then
  redis.call('HSET', KEYS[2], 'd', record, 'l', labels)
  redis.call('HDEL', KEYS[2], 'by', 'since')
elseif outcome == 'free' then
  redis.call('DEL', KEYS[1], KEYS[2])
else
  redis.call('HDEL', KEYS[2], 'by', 'since')
end
return 1
