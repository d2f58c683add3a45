#!lua
-- Accepts an import job, once all of its items are stored.
--
-- KEYS[1]  job (hash)    KEYS[2]  items (hash)    KEYS[3]  unfinished jobs of the channel (set)    KEYS[4]  waiting jobs
-- KEYS[5]  latest jobs of the partition (sorted set by the time they were accepted)
-- KEYS[6]  job -> the channel whose turn it takes (hash)
-- ARGV[1]  job id    ARGV[2]  unfinished jobs a channel may have
-- ARGV[3]  seconds the job is kept    ARGV[4]  due time, milliseconds
-- ARGV[5]  the job among the latest ones    ARGV[6]  how many of them are kept
-- ARGV[7]  channel    ARGV[8..] fields and values of the job, at most 50
--
-- Reply: 1 = accepted, 0 = the channel has too many unfinished jobs.
local most = 50
assert(#ARGV > 7 and #ARGV % 2 == 1 and (#ARGV - 7) / 2 <= most, 'fields of the job')
assert(ARGV[3] + 0 > 0 and tonumber(ARGV[4]), 'a time')
assert(ARGV[5] ~= '' and ARGV[6] + 0 > 0, 'a place among the latest jobs')
if redis.call('SCARD', KEYS[3]) >= ARGV[2] + 0 then
  redis.call('UNLINK', KEYS[2])
  return 0
end
redis.call('HSET', KEYS[1], unpack(ARGV, 8))
redis.call('EXPIRE', KEYS[1], ARGV[3])
redis.call('EXPIRE', KEYS[2], ARGV[3])
redis.call('SADD', KEYS[3], ARGV[1])
redis.call('ZADD', KEYS[4], ARGV[4], ARGV[1])
redis.call('HSET', KEYS[6], ARGV[1], ARGV[7])
redis.call('EXPIRE', KEYS[6], ARGV[3])
redis.call('ZADD', KEYS[5], ARGV[4], ARGV[5])
redis.call('ZREMRANGEBYRANK', KEYS[5], 0, -1 - ARGV[6])
redis.call('EXPIRE', KEYS[5], ARGV[3])
return 1
