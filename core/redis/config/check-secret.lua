#!lua
-- Rate-limits wrong secrets: each takes a token from a bucket of the caller's network, which refills steadily. While
-- it is empty, a secret is accepted only if its holder was accepted from there before.
--
-- KEYS[1]  bucket (hash: tokens, at)
-- KEYS[2]  holders that were accepted from there (sorted set: holder -> service clock, milliseconds)
-- ARGV[1]  the service clock, milliseconds
-- ARGV[2]  wrong secrets a second    ARGV[3]  burst, the size of the bucket
-- ARGV[4]  whose secret it is, empty = it is wrong
-- ARGV[5]  holders kept    ARGV[6]  milliseconds they are kept    ARGV[7]  milliseconds after which one is recorded again
--
-- Reply: {1 = checked, 0 = refused unchecked; milliseconds until the next attempt}
local now, rate, burst, holder = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local holdersKept, keptMs, notedMs = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens, at = tonumber(bucket[1]) or burst, tonumber(bucket[2]) or now
tokens = math.min(burst, tokens + math.max(0, now - at) * rate / 1000)
local waitMs = math.max(0, math.ceil((1 - tokens) / rate * 1000))
if holder == '' then
  if waitMs > 0 then return {0, waitMs} end
  redis.call('HSET', KEYS[1], 'tokens', tostring(tokens - 1), 'at', math.max(at, now))
  redis.call('PEXPIRE', KEYS[1], math.ceil(burst / rate * 1000) + 1000)
  return {1, 0}
end
local last = tonumber(redis.call('ZSCORE', KEYS[2], holder))
local isKnown = last and now - last < keptMs
if not isKnown and waitMs > 0 then return {0, waitMs} end
if not isKnown or now - last >= notedMs then
  redis.call('ZADD', KEYS[2], now, holder)
  redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -holdersKept - 1)
  redis.call('PEXPIRE', KEYS[2], keptMs)
end
return {1, 0}
