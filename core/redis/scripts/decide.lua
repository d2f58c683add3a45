-- Records webhook decisions and creates and queues the deliveries that are to be sent. Repeating a change does nothing.
--
-- KEYS[1]  endpoints with first attempts (sorted set)
-- KEYS[2]  counter of turns
-- KEYS[3]  ledger (hash): `webhook:<verdict>` grows by the decisions, `webhook:failed` by deliveries refused at the limit
-- ARGV[1]  hash tag of the partition; further keys of the same tag are built from it
-- ARGV[2]  the service clock, milliseconds    ARGV[3]  milliseconds decisions and deliveries live
-- ARGV[4]  decisions a shipment keeps         ARGV[5]  deliveries an endpoint's lanes hold
-- ARGV[6]  reason of a delivery that finds its lane full
-- then, for each change, 500 at most: shipment id, event id, decision (JSON), v = number of verdicts, d = number of deliveries,
--   v verdicts, then d times: delivery id, endpoint id, delivery (JSON)
--
-- A shipment at its limit of decisions keeps the old ones; its deliveries are made all the same. A delivery for a full
-- lane fails at once and stays replayable.
--
-- Reply: for each change the number of deliveries made, -1 when it was decided before.
local ring, turns, ledger = KEYS[1], KEYS[2], KEYS[3]
local tag, now, ttl = ARGV[1], ARGV[2], ARGV[3]
local keep, hold, full = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local reply, counts, lanes = {}, {}, {}

local function count(name)
  counts[name] = (counts[name] or 0) + 1
end

-- What this call adds to an endpoint: one write a list at the end.
local function lane(endpoint)
  local one = lanes[endpoint]
  if not one then
    local oldest = tonumber(now) - tonumber(ttl)
    redis.call('ZREMRANGEBYSCORE', tag .. ':dl:' .. endpoint, '-inf', oldest)
    redis.call('ZREMRANGEBYSCORE', tag .. ':df:' .. endpoint, '-inf', oldest)
    local held = redis.call('LLEN', tag .. ':dq:' .. endpoint) + redis.call('ZCARD', tag .. ':dr:' .. endpoint)
    one = { room = hold - held, queued = {}, failed = {}, log = {} }
    lanes[endpoint] = one
  end
  return one
end

local function create(delivery, endpoint, frozen)
  local key = tag .. ':d:' .. delivery
  if redis.call('EXISTS', key) == 1 then return 0 end
  local one = lane(endpoint)
  one.room = one.room - 1
  local queued = one.room >= 0
  redis.call('HSET', key, 'i', frozen, 'e', endpoint, 's', queued and 'queued' or 'failed',
    'g', 1, 'n', 0, 'a', '[]', 'r', queued and '' or full)
  redis.call('PEXPIRE', key, ttl)
  one.log[#one.log + 1] = now
  one.log[#one.log + 1] = delivery
  if queued then
    one.queued[#one.queued + 1] = delivery
  else
    one.failed[#one.failed + 1] = now
    one.failed[#one.failed + 1] = delivery
    count('failed')
  end
  return 1
end

local function add(key, members)
  redis.call('ZADD', key, unpack(members))
  redis.call('PEXPIRE', key, ttl)
end

local function file(endpoint, one)
  if #one.log > 0 then add(tag .. ':dl:' .. endpoint, one.log) end
  if #one.failed > 0 then add(tag .. ':df:' .. endpoint, one.failed) end
  if #one.queued > 0 then
    redis.call('RPUSH', tag .. ':dq:' .. endpoint, unpack(one.queued))
    if not redis.call('ZSCORE', ring, endpoint) then
      redis.call('ZADD', ring, redis.call('INCR', turns), endpoint)
    end
  end
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
for endpoint, one in pairs(lanes) do file(endpoint, one) end
for name, n in pairs(counts) do redis.call('HINCRBY', ledger, 'webhook:' .. name, n) end
return reply
