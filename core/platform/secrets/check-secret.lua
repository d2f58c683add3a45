#!lua
-- Rate-limits wrong secrets: each takes a token from a bucket, which refills steadily, and while it is empty a right one is
-- refused too. Who was accepted from there before has a bucket of their own, so that others neither keep them out nor guess on
-- in their place.
--
-- KEYS[1]  bucket of all that were not (hash: tokens, at)
-- KEYS[2]  holders that were accepted from there (sorted set: holder -> service clock, milliseconds)
-- KEYS[3]  bucket of the holder alone; KEYS[1] where nobody is named
-- ARGV[1]  the service clock, milliseconds
-- ARGV[2]  wrong secrets a second    ARGV[3]  burst, the size of the bucket
-- ARGV[4]  who shows the secret, empty = not told    ARGV[5]  1 = it is right, 0 = it is wrong
-- ARGV[6]  holders kept    ARGV[7]  milliseconds they are kept    ARGV[8]  milliseconds after which one is recorded again
--
-- Reply: {1 = checked, 0 = refused unchecked; milliseconds until the next attempt}
local now, holder, isRight = tonumber(ARGV[1]), ARGV[4], ARGV[5] == '1'
local holdersKept, keptMs, notedMs = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local last = holder ~= '' and tonumber(redis.call('ZSCORE', KEYS[2], holder))
local isKnown = last and now - last < keptMs
local own, rate, burst = isKnown and 3 or 1, tonumber(ARGV[2]), tonumber(ARGV[3])
local bucket = redis.call('HMGET', KEYS[own], 'tokens', 'at')
local tokens, at = tonumber(bucket[1]) or burst, tonumber(bucket[2]) or now
tokens = math.min(burst, tokens + math.max(0, now - at) * rate / 1000)
local waitMs = math.max(0, math.ceil((1 - tokens) / rate * 1000))
if waitMs > 0 then return {0, waitMs} end
if not isRight then
  redis.call('HSET', KEYS[own], 'tokens', tostring(tokens - 1), 'at', math.max(at, now))
  redis.call('PEXPIRE', KEYS[own], math.ceil(burst / rate * 1000) + 1000)
  return {1, 0}
end
if not isKnown or now - last >= notedMs then
  redis.call('ZADD', KEYS[2], now, holder)
  redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -holdersKept - 1)
  redis.call('PEXPIRE', KEYS[2], keptMs)
end
return {1, 0}
