#!lua
-- Accepts messages to recipients: each topic sent once, and the queue bounded.
--
-- KEYS[1]  waiting messages (sorted set)    KEYS[2]  messages under a lease (sorted set)
-- KEYS[2i+1]  messages already sent to the shipment's recipient (hash: topic -> when)    KEYS[2i+2]  message (hash)
-- ARGV[1]  the service clock, milliseconds    ARGV[2]  messages the queue may hold
-- then, for each message: its id, its topic, milliseconds in which a topic is sent once (0 = for ever), message (JSON)
--
-- Reply: for each message 1 = accepted, 0 = the queue is full, -1 = the topic was sent before, or the recipient was erased
-- (topic `erased`).
local now, limit = ARGV[1] + 0, ARGV[2] + 0
assert(#ARGV % 4 == 2 and #KEYS == 2 + (#ARGV - 2) / 2, 'keys of a message')
for at = 5, #ARGV, 4 do assert(tonumber(ARGV[at]), 'a time') end
local held = redis.call('ZCARD', KEYS[1]) + redis.call('ZCARD', KEYS[2])
local reply = {}
for index = 1, (#ARGV - 2) / 4 do
  local topics, message, at = KEYS[2 * index + 1], KEYS[2 * index + 2], 4 * index - 1
  local id, topic, window = ARGV[at], ARGV[at + 1], ARGV[at + 2] + 0
  local last = redis.call('HGET', topics, topic)
  if redis.call('HEXISTS', topics, 'erased') == 1 then
    reply[index] = -1
  elseif last and (window == 0 or now < tonumber(last) + window) then
    reply[index] = -1
  elseif held >= limit then
    reply[index] = 0
  else
    held = held + 1
    redis.call('HSET', topics, topic, ARGV[1])
    redis.call('HSET', message, 'm', ARGV[at + 3], 'n', 0)
    redis.call('ZADD', KEYS[1], ARGV[1], id)
    reply[index] = 1
  end
end
return reply
