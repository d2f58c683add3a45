#!lua
-- Queues failed deliveries as new: the next generation, attempts from 1. Alone, or as a step of a window's replay.
--
-- KEYS[1]  endpoints with first attempts (sorted set)    KEYS[2]  counter of turns
-- KEYS[3]  ledger (hash): `webhook:failed` shrinks
-- KEYS[4]  replay of a window (hash), KEYS[5] replays that are not done (set), KEYS[6] shipments it has served (set);
--          all three absent when single deliveries are replayed
-- ARGV[1]  hash tag of the partition; further keys of the same tag are built from it
-- ARGV[2]  milliseconds a replayed delivery lives at least: all of its attempts
-- ARGV[3]  where the replay stands    ARGV[4]  where it stands after this step    (both '' without a replay)
-- ARGV[5]  the replay's id when this step is its last one, else ''
-- then, for each delivery, two: its id, and its shipment's when the shipment is served once only, else ''
--
-- A replay that stands elsewhere was stepped by another process meanwhile: nothing is done.
--
-- Reply: for each delivery 1 = queued, 0 = not failed, gone, or its shipment served; empty when nothing was done.
local ring, turns, ledger, replay, replays, served = unpack(KEYS)
local tag, life = ARGV[1], tonumber(ARGV[2])
local reply, queued = {}, 0
if replay and redis.call('HGET', replay, 'at') ~= ARGV[3] then return reply end

local function queue(delivery)
  local key = tag .. ':d:' .. delivery
  local kept = redis.call('HMGET', key, 's', 'i', 'g')
  if kept[1] ~= 'failed' then return 0 end
  local endpoint, generation = string.match(kept[2], '^%S+'), (tonumber(kept[3]) or 1) + 1
  redis.call('HSET', key, 's', 'queued', 'g', generation, 'n', 0, 'd', '', 'r', '')
  if redis.call('PTTL', key) < life then redis.call('PEXPIRE', key, life) end
  redis.call('ZREM', tag .. ':df:' .. endpoint, delivery)
  redis.call('RPUSH', tag .. ':dq:' .. endpoint, delivery)
  redis.call('ZADD', ring, 'NX', redis.call('INCR', turns), endpoint)
  return 1
end

for at = 6, #ARGV, 2 do
  local delivery, shipment = ARGV[at], ARGV[at + 1]
  local wanted = shipment == '' or redis.call('SADD', served, shipment) == 1
  local done = wanted and queue(delivery) or 0
  queued = queued + done
  reply[#reply + 1] = done
end
if queued > 0 then redis.call('HINCRBY', ledger, 'webhook:failed', -queued) end
if replay then
  redis.call('HSET', replay, 'at', ARGV[4])
  redis.call('HINCRBY', replay, 'queued', queued)
  redis.call('HINCRBY', replay, 'passedOver', #reply - queued)
  if redis.call('EXISTS', served) == 1 then redis.call('PEXPIRE', served, redis.call('PTTL', replay)) end
  if ARGV[5] ~= '' then
    redis.call('HSET', replay, 'state', 'done')
    redis.call('SREM', replays, ARGV[5])
    redis.call('DEL', served)
  end
end
return reply
