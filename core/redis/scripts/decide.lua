-- Records webhook decisions and creates and queues the deliveries that are to be sent. Repeating a change does nothing.
--
-- KEYS[1]  endpoints with first attempts (sorted set)
-- KEYS[2]  counter of turns
-- KEYS[3]  ledger (hash): `webhook:<verdict>` grows by the decisions, `webhook:failed` by deliveries refused at the limit
-- ARGV[1]  hash tag of the partition; further keys of the same tag are built from it
-- ARGV[2]  the service clock, milliseconds    ARGV[3]  milliseconds decisions and deliveries live
-- ARGV[4]  decisions a shipment keeps         ARGV[5]  deliveries an endpoint's lanes hold
-- ARGV[6]  reason of a delivery that finds its lane full
-- then, for each change: shipment id, event id, decision (JSON), v = number of verdicts, d = number of deliveries,
--   v verdicts, then d times: delivery id, endpoint id, delivery (JSON)
--
-- A shipment at its limit of decisions keeps the old ones; its deliveries are made all the same. A delivery for a full
-- lane fails at once and stays replayable.
--
-- Reply: for each change the number of deliveries made, -1 when it was decided before.
local ring, turns, ledger = KEYS[1], KEYS[2], KEYS[3]
local tag, now, ttl = ARGV[1], ARGV[2], ARGV[3]
local keep, hold, full = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local reply, counts, held = {}, {}, {}

local function count(name)
  counts[name] = (counts[name] or 0) + 1
end

local function room(endpoint)
  if not held[endpoint] then
    local oldest = tonumber(now) - tonumber(ttl)
    redis.call('ZREMRANGEBYSCORE', tag .. ':dl:' .. endpoint, '-inf', oldest)
    redis.call('ZREMRANGEBYSCORE', tag .. ':df:' .. endpoint, '-inf', oldest)
    held[endpoint] = redis.call('LLEN', tag .. ':dq:' .. endpoint)
      + redis.call('ZCARD', tag .. ':dr:' .. endpoint)
  end
  held[endpoint] = held[endpoint] + 1
  return held[endpoint] <= hold
end

local function create(delivery, endpoint, frozen)
  local key = tag .. ':d:' .. delivery
  if redis.call('EXISTS', key) == 1 then return 0 end
  local queued = room(endpoint)
  redis.call('HSET', key, 'i', frozen, 'e', endpoint, 's', queued and 'queued' or 'failed',
    'g', 1, 'n', 0, 'a', '[]', 'r', queued and '' or full)
  redis.call('PEXPIRE', key, ttl)
  local log, failed = tag .. ':dl:' .. endpoint, tag .. ':df:' .. endpoint
  redis.call('ZADD', log, now, delivery)
  redis.call('PEXPIRE', log, ttl)
  if queued then
    redis.call('RPUSH', tag .. ':dq:' .. endpoint, delivery)
    redis.call('ZADD', ring, 'NX', redis.call('INCR', turns), endpoint)
  else
    redis.call('ZADD', failed, now, delivery)
    redis.call('PEXPIRE', failed, ttl)
    count('failed')
  end
  return 1
end

local at = 7
while at <= #ARGV do
  local shipment, event, decision = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local verdicts, deliveries = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local first = at + 5 + verdicts
  local decided = tag .. ':dv:' .. shipment
  if redis.call('HEXISTS', decided, event) == 1 then
    reply[#reply + 1] = -1
  else
    if redis.call('HLEN', decided) < keep then
      redis.call('HSET', decided, event, decision)
      redis.call('PEXPIRE', decided, ttl)
    end
    for verdict = at + 5, first - 1 do count(ARGV[verdict]) end
    local made = 0
    for one = first, first + 3 * (deliveries - 1), 3 do
      made = made + create(ARGV[one], ARGV[one + 1], ARGV[one + 2])
    end
    reply[#reply + 1] = made
  end
  at = first + 3 * deliveries
end
for name, n in pairs(counts) do redis.call('HINCRBY', ledger, 'webhook:' .. name, n) end
return reply
