#!lua flags=allow-oom
-- Renews the lease of a piece of work, puts the work back for later, or ends it. Runs with a full memory too: work in hand stays
-- in hand, and nothing is added.
--
-- KEYS[1]  waiting work    KEYS[2]  leases    KEYS[3]  work -> lease
-- ARGV[1]  id    ARGV[2]  lease
-- ARGV[3]  'renew', 'again' or 'done'
-- ARGV[4]  milliseconds the renewed lease lasts, or the due time of work put back
--
-- Reply: 1 = done, 0 = the lease had ended and the work is another's.
local id = ARGV[1]
if redis.call('HGET', KEYS[3], id) ~= ARGV[2] then return 0 end
if ARGV[3] == 'renew' then
  local time = redis.call('TIME')
  redis.call('ZADD', KEYS[2], time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[4], id)
  return 1
end
redis.call('ZREM', KEYS[2], id)
redis.call('HDEL', KEYS[3], id)
if ARGV[3] == 'again' then redis.call('ZADD', KEYS[1], ARGV[4], id) end
return 1
