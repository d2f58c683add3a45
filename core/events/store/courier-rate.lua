#!lua
-- Takes tokens from a bucket that refills steadily (document 2, "Limits": sustained rate and burst).
--
-- KEYS[1]  bucket (hash: tokens, at)
-- ARGV[1]  the service clock, milliseconds
-- ARGV[2]  tokens a second
-- ARGV[3]  burst, the size of the bucket
-- ARGV[4]  tokens asked for
--
-- Reply: {tokens taken, whole tokens left, milliseconds until the next token}
local now, rate, burst, asked = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0
assert(rate > 0 and burst >= 0 and asked >= 0, 'a limit')
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens, at = tonumber(bucket[1]) or burst, tonumber(bucket[2]) or now
tokens = math.min(burst, tokens + math.max(0, now - at) * rate / 1000)
local taken = math.min(asked, math.floor(tokens))
tokens = tokens - taken
redis.call('HSET', KEYS[1], 'tokens', tostring(tokens), 'at', math.max(at, now))
redis.call('PEXPIRE', KEYS[1], math.ceil(burst / rate * 1000) + 1000)
return {taken, math.floor(tokens), math.max(0, math.ceil((1 - tokens) / rate * 1000))}
