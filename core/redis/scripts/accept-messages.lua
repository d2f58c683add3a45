#!lua
-- Accepts messages to recipients: each thing told once, and the queue bounded.
--
-- KEYS[1]  waiting messages (sorted set)    KEYS[2]  messages under a lease (sorted set)
-- ARGV[1]  hash tag of the partition; further keys of the same tag are built from it
-- ARGV[2]  the service clock, milliseconds    ARGV[3]  messages the queue may hold
-- then, for each message: its id, shipment id, what is told, milliseconds in which it is told once (0 = ever), message (JSON)
--
-- Reply: for each message 1 = accepted, 0 = the queue is full, -1 = that was told before.
local tag, now, limit = ARGV[1], ARGV[2], tonumber(ARGV[3])
local held = redis.call('ZCARD', KEYS[1]) + redis.call('ZCARD', KEYS[2])
local reply = {}
for at = 4, #ARGV, 5 do
  local id, shipment, what, window = ARGV[at], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3])
  local told = tag .. ':told:' .. shipment
  local last = redis.call('HGET', told, what)
  if last and (window == 0 or tonumber(now) < tonumber(last) + window) then
    reply[#reply + 1] = -1
  elseif held >= limit then
    reply[#reply + 1] = 0
  else
    held = held + 1
    redis.call('HSET', told, what, now)
    redis.call('HSET', tag .. ':msg:' .. id, 'm', ARGV[at + 4], 'n', 0)
    redis.call('ZADD', KEYS[1], now, id)
    reply[#reply + 1] = 1
  end
end
return reply
