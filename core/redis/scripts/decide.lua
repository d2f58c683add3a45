#!lua
-- Records webhook decisions and creates and queues the deliveries that are to be sent. Repeating a change does nothing.
--
-- KEYS[1]  endpoints with first attempts (sorted set)
-- KEYS[2]  counter of turns
-- KEYS[3]  ledger (hash): `webhook:<verdict>` grows by the decisions, `webhook:failed` by deliveries refused at the limit
-- ARGV[1]  hash tag of the partition; further keys of the same tag are built from it
-- ARGV[2]  the service clock, milliseconds    ARGV[3]  milliseconds decisions and deliveries live
-- ARGV[4]  decisions a shipment keeps         ARGV[5]  deliveries an endpoint's lanes hold
-- ARGV[6]  reason of a delivery that finds its lane full
-- ARGV[7]  the changes, 500 at most (MessagePack, one list of texts); for each: shipment id, event id, decision (JSON), channel id,
--   fact (JSON; '' without deliveries), v = number of verdicts, then v times: the verdict and, where it is `send`, delivery id,
--   endpoint id, trigger
--
-- A shipment at its limit of decisions keeps the old ones; its deliveries are made all the same. A delivery for a full
-- lane fails at once and stays replayable.
--
-- Reply: for each change the number of deliveries made, -1 when it was decided before.
local ring, turns, ledger = KEYS[1], KEYS[2], KEYS[3]
local tag, now, ttl = ARGV[1], ARGV[2], ARGV[3]
local keep, hold, full = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local reply, counts, lanes = {}, {}, {}
local list, call = cmsgpack.unpack(ARGV[7]), redis.call

local function count(name)
  counts[name] = (counts[name] or 0) + 1
end

-- Shipments that this call has met: how many decisions they keep, and the keys of those it adds to.
local kept, grown = {}, {}

-- Whether the change was not decided before, and whether that is known from now on.
local function record(shipment, event, decision)
  local key = tag .. ':dv:' .. shipment
  local held = kept[shipment] or call('HLEN', key)
  local isNew, isTraced
  if held < keep then
    isNew = call('HSETNX', key, event, decision) == 1
    isTraced = isNew
  else
    isNew = call('HEXISTS', key, event) == 0
  end
  kept[shipment] = isTraced and held + 1 or held
  if isTraced then grown[shipment] = key end
  return isNew, isTraced
end

-- What this call adds to an endpoint: one write a list at the end.
local function lane(endpoint)
  local one = lanes[endpoint]
  if not one then
    local oldest = tonumber(now) - tonumber(ttl)
    call('ZREMRANGEBYSCORE', tag .. ':dl:' .. endpoint, '-inf', oldest)
    call('ZREMRANGEBYSCORE', tag .. ':df:' .. endpoint, '-inf', oldest)
    local held = call('LLEN', tag .. ':dq:' .. endpoint) + call('ZCARD', tag .. ':dr:' .. endpoint)
    one = { room = hold - held, queued = {}, failed = {}, log = {} }
    lanes[endpoint] = one
  end
  return one
end

-- Generation 1 and no attempts stand for themselves where nothing else is written. A decision lives as long as its
-- deliveries, but for those replayed in their last two days: only where it left no trace may one be there already.
local function create(delivery, endpoint, frozen, isTraced)
  local key = tag .. ':d:' .. delivery
  if not isTraced and call('EXISTS', key) == 1 then return 0 end
  local one = lane(endpoint)
  one.room = one.room - 1
  one.log[#one.log + 1] = now
  one.log[#one.log + 1] = delivery
  if one.room >= 0 then
    call('HSET', key, 'i', frozen, 's', 'queued')
    one.queued[#one.queued + 1] = delivery
  else
    call('HSET', key, 'i', frozen, 's', 'failed', 'r', full)
    one.failed[#one.failed + 1] = now
    one.failed[#one.failed + 1] = delivery
    count('failed')
  end
  call('PEXPIRE', key, ttl)
  return 1
end

local function add(key, members)
  call('ZADD', key, unpack(members))
  call('PEXPIRE', key, ttl)
end

local function file(endpoint, one)
  if #one.log > 0 then add(tag .. ':dl:' .. endpoint, one.log) end
  if #one.failed > 0 then add(tag .. ':df:' .. endpoint, one.failed) end
  if #one.queued > 0 then
    call('RPUSH', tag .. ':dq:' .. endpoint, unpack(one.queued))
    if not call('ZSCORE', ring, endpoint) then call('ZADD', ring, call('INCR', turns), endpoint) end
  end
end

local at = 1
while at <= #list do
  local shipment, event, decision, channel, fact, verdicts = unpack(list, at, at + 5)
  at = at + 6
  local isNew, isTraced = record(shipment, event, decision)
  local made = isNew and 0 or -1
  for _ = 1, tonumber(verdicts) do
    local verdict = list[at]
    if isNew then count(verdict) end
    at = at + 1
    if verdict == 'send' then
      local delivery, endpoint, trigger = unpack(list, at, at + 2)
      at = at + 3
      if isNew then
        local frozen = endpoint .. ' ' .. event .. ' ' .. shipment .. ' ' .. channel .. ' ' .. trigger .. ' ' .. now .. '\n' .. fact
        made = made + create(delivery, endpoint, frozen, isTraced)
      end
    end
  end
  reply[#reply + 1] = made
end
for _, key in pairs(grown) do call('PEXPIRE', key, ttl) end
for endpoint, one in pairs(lanes) do file(endpoint, one) end
for name, n in pairs(counts) do call('HINCRBY', ledger, 'webhook:' .. name, n) end
return reply
