#!lua
-- Admits a merchant's request: takes a token of the channel's bucket, unless the API key is suspended or the bucket empty.
--
-- KEYS[1]  bucket of the channel (hash: t = tokens, s = start of its cycle); missing = full
-- KEYS[2]  when the API key was answered 429 (list)
-- KEYS[3]  until when the API key is suspended (string)
-- ARGV[1]  the service clock; all times are milliseconds
-- ARGV[2]  capacity of the bucket    ARGV[3]  tokens added at once at the end of a cycle    ARGV[4]  length of a cycle
-- ARGV[5]  answers 429 that suspend the key    ARGV[6]  within this time    ARGV[7]  for so long
--
-- A cycle begins with the first request on a full bucket.
--
-- Reply: 1 = admitted, 0 = the bucket is empty, 2 = the key is suspended; tokens left; time of the next refill; until
-- when the key is suspended (0 = it is not).
local now, capacity, refill, cycle = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0
local limit, within, suspendedMs = ARGV[5] + 0, ARGV[6] + 0, ARGV[7] + 0
assert(capacity >= 1 and refill > 0 and cycle > 0 and limit >= 1 and within >= 1 and suspendedMs >= 1, 'a limit')
local state = redis.call('HMGET', KEYS[1], 't', 's')
local tokens, start = tonumber(state[1]) or capacity, tonumber(state[2]) or now
local cycles = math.max(0, math.floor((now - start) / cycle))
tokens, start = tokens + cycles * refill, start + cycles * cycle
if tokens >= capacity then
  tokens, start = capacity, now
end

local suspended = redis.call('GET', KEYS[3])
if suspended and now < suspended + 0 then return { 2, tokens, start + cycle, suspended + 0 } end

if tokens < 1 then
  redis.call('RPUSH', KEYS[2], ARGV[1])
  redis.call('LTRIM', KEYS[2], -limit, -1)
  redis.call('PEXPIRE', KEYS[2], within)
  if redis.call('LLEN', KEYS[2]) == limit and now - tonumber(redis.call('LINDEX', KEYS[2], 0)) <= within then
    redis.call('SET', KEYS[3], now + suspendedMs, 'PX', ARGV[7])
    redis.call('DEL', KEYS[2])
  end
  return { 0, 0, start + cycle, 0 }
end

tokens = tokens - 1
redis.call('HSET', KEYS[1], 't', tokens, 's', start)
redis.call('PEXPIRE', KEYS[1], math.ceil((capacity - tokens) / refill) * cycle)
return { 1, tokens, start + cycle, 0 }
