#!lua flags=allow-oom
-- Renews the lease of a piece of work, puts the work back for later, or ends it. Runs with full memory too: work in progress
-- continues, and nothing is added.
--
-- KEYS[1]  waiting work    KEYS[2]  leases    KEYS[3]  work -> lease    KEYS[4]  work -> its owner
-- ARGV[1]  id    ARGV[2]  lease
-- ARGV[3]  'renew', 'again' or 'done'
-- ARGV[4]  milliseconds the renewed lease lasts, or the due time of work put back
--
-- Reply: 1 = done, 0 = the lease had ended and the work is another's.
local id, what, number = ARGV[1], ARGV[3], tonumber(ARGV[4])
assert(what == 'done' or ((what == 'renew' or what == 'again') and number), 'what to do, or when')
if redis.call('HGET', KEYS[3], id) ~= ARGV[2] then return 0 end
if what == 'renew' then
  local time = redis.call('TIME')
  redis.call('ZADD', KEYS[2], time[1] * 1000 + math.floor(time[2] / 1000) + number, id)
  return 1
end
if what == 'again' then redis.call('ZADD', KEYS[1], ARGV[4], id) end
redis.call('ZREM', KEYS[2], id)
redis.call('HDEL', KEYS[3], id)
if what == 'done' then redis.call('HDEL', KEYS[4], id) end
return 1
