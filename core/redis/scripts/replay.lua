-- Queues failed deliveries as new: the next generation, attempts from 1.
--
-- KEYS[1]  endpoints with first attempts (sorted set)    KEYS[2]  counter of turns
-- KEYS[3]  ledger (hash): `webhook:failed` shrinks
-- ARGV[1]  hash tag of the partition; further keys of the same tag are built from it
-- ARGV[2…] delivery ids
--
-- Reply: for each delivery 1 = queued, 0 = not failed, or gone.
local ring, turns, ledger, tag = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
local reply, queued = {}, 0
for at = 2, #ARGV do
  local key = tag .. ':d:' .. ARGV[at]
  local kept = redis.call('HMGET', key, 's', 'e')
  if kept[1] == 'failed' then
    redis.call('HSET', key, 's', 'queued', 'n', 0, 'd', '', 'r', '')
    redis.call('HINCRBY', key, 'g', 1)
    redis.call('RPUSH', tag .. ':dq:' .. kept[2], ARGV[at])
    redis.call('ZADD', ring, 'NX', redis.call('INCR', turns), kept[2])
    queued = queued + 1
    reply[#reply + 1] = 1
  else
    reply[#reply + 1] = 0
  end
end
if queued > 0 then redis.call('HINCRBY', ledger, 'webhook:failed', -queued) end
return reply
