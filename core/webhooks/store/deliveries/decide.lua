#!lua
-- Records webhook decisions and creates and queues the deliveries that are to be sent. Repeating a change does nothing.
--
-- KEYS[1]  endpoints with first attempts (sorted set)         KEYS[2]  counter of turns
-- KEYS[3]  failing endpoints (sorted set)
-- KEYS[4]  ledger (hash): `webhook:<verdict>` grows by the decisions, `webhook:failed` by deliveries refused at the limit
-- then, for each endpoint, four: first attempts (list), retries, log, failed deliveries (sorted sets)
-- then, for each change: the decisions of its shipment (hash) and its deliveries (hashes)
-- ARGV[1]  the service clock, milliseconds    ARGV[2]  milliseconds decisions and deliveries live
-- ARGV[3]  decisions a shipment keeps         ARGV[4]  deliveries the queues of an endpoint hold
-- ARGV[5]  failure reason of a delivery whose queue is full
-- ARGV[6]  where the scores of failing endpoints begin in the ring
-- ARGV[7]  endpoints (MessagePack, one list of texts)
-- ARGV[8]  the changes, 500 at most, with 1,000 deliveries at most (MessagePack, one list of texts); for each: event id, v =
--   number of verdicts, then v times: the verdict and, where it is `send`, delivery id, index of its endpoint in ARGV[7] from 1
-- ARGV[9…] for each change: its decision (JSON), then what never changes of each of its deliveries
--
-- Texts go on as they came: Redis hashes every byte of a text that a script makes, and writes a number with 17 digits. Long ones
-- are arguments of their own: from a list they would be hashed twice.
-- A shipment at its limit of decisions keeps the old ones; its deliveries are made all the same, and tell that a change was
-- decided before. A delivery for a full queue fails at once and stays replayable.
--
-- Reply: for each change the number of deliveries made, -1 when it was decided before.
local ring, turns, failing, ledger = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local FIXED_KEYS, FIXED_ARGUMENTS, MOST_CHANGES, MOST_DELIVERIES = 4, 8, 500, 1000
local now, ttl, keep, hold = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local nowText, ttlText, full, failingFrom, call = ARGV[1], ARGV[2], ARGV[5], tonumber(ARGV[6]), redis.call
local named, list = cmsgpack.unpack(ARGV[7]), cmsgpack.unpack(ARGV[8])
assert(now and ttl and keep and hold and failingFrom and type(named) == 'table' and type(list) == 'table', 'malformed arguments')
for at = 1, #list do assert(type(list[at]) == 'string', 'changes are no texts') end

local endpoints, changes, sends, at, key, text = {}, {}, 0, 1, FIXED_KEYS, FIXED_ARGUMENTS
for index, id in ipairs(named) do
  assert(type(id) == 'string', 'an endpoint is no text')
  endpoints[index] = { id = id, queue = KEYS[key + 1], retries = KEYS[key + 2], log = KEYS[key + 3], failures = KEYS[key + 4] }
  endpoints[index].queued, endpoints[index].failed, endpoints[index].logged, key = {}, {}, {}, key + 4
end
while at <= #list do
  local change = { decisions = KEYS[key + 1], event = list[at], decision = ARGV[text + 1], sends = {}, verdicts = {} }
  local verdicts = tonumber(list[at + 1])
  assert(verdicts and verdicts >= 0 and change.decision, 'a change is cut off')
  key, text, at = key + 1, text + 1, at + 2
  for n = 1, verdicts do
    local verdict = assert(list[at], 'a verdict is missing')
    change.verdicts[n], at = verdict, at + 1
    if verdict == 'send' then
      local send = { id = list[at], endpoint = endpoints[tonumber(list[at + 1])], delivery = KEYS[key + 1], frozen = ARGV[text + 1] }
      assert(send.endpoint and send.delivery and send.frozen, 'malformed delivery')
      change.sends[#change.sends + 1], key, text, at, sends = send, key + 1, text + 1, at + 2, sends + 1
    end
  end
  changes[#changes + 1] = change
end
assert(key == #KEYS and text == #ARGV, 'keys, texts and changes do not fit')
assert(#changes <= MOST_CHANGES and sends <= MOST_DELIVERIES, 'changes or deliveries do not fit')

local reply, counts, kept, grown = {}, {}, {}, {}
local function count(name) counts[name] = (counts[name] or 0) + 1 end

-- Whether the change was not decided before. A decision lives as long as its deliveries, replayed ones included.
local function record(change)
  local decisions = change.decisions
  local held = kept[decisions] or call('HLEN', decisions)
  kept[decisions] = held
  if held >= keep then
    for _, send in ipairs(change.sends) do if call('EXISTS', send.delivery) == 1 then return false end end
    return call('HEXISTS', decisions, change.event) == 0
  end
  if call('HSETNX', decisions, change.event, change.decision) == 0 then return false end
  kept[decisions], grown[decisions] = held + 1, change
  return true
end

-- Generation 1 and no attempts stand for themselves where nothing else is written.
local function create(send)
  local endpoint, delivery, frozen = send.endpoint, send.delivery, send.frozen
  endpoint.capacity = (endpoint.capacity or hold - call('LLEN', endpoint.queue) - call('ZCARD', endpoint.retries)) - 1
  endpoint.logged[#endpoint.logged + 1], endpoint.logged[#endpoint.logged + 2] = nowText, send.id
  if endpoint.capacity >= 0 then
    call('HSET', delivery, 'i', frozen, 's', 'queued')
    endpoint.queued[#endpoint.queued + 1] = send.id
  else
    call('HSET', delivery, 'i', frozen, 's', 'failed', 'r', full)
    endpoint.failed[#endpoint.failed + 1], endpoint.failed[#endpoint.failed + 2] = nowText, send.id
    count('failed')
  end
  call('PEXPIRE', delivery, ttlText)
end

-- Expired members are removed after new ones were added, so that no set is empty in between.
local function file(sorted, members)
  if #members > 0 then
    call('ZADD', sorted, unpack(members))
    call('PEXPIRE', sorted, ttlText)
  end
  call('ZREMRANGEBYSCORE', sorted, '-inf', now - ttl)
end

for index, change in ipairs(changes) do
  local isNew = record(change)
  reply[index] = isNew and #change.sends or -1
  for _, verdict in ipairs(isNew and change.verdicts or {}) do count(verdict) end
  for _, send in ipairs(isNew and change.sends or {}) do create(send) end
end
for _, change in pairs(grown) do call('PEXPIRE', change.decisions, ttlText) end
for _, endpoint in ipairs(endpoints) do
  if #endpoint.logged > 0 then
    file(endpoint.log, endpoint.logged)
    file(endpoint.failures, endpoint.failed)
  end
  if #endpoint.queued > 0 then
    call('RPUSH', endpoint.queue, unpack(endpoint.queued))
    if not call('ZSCORE', ring, endpoint.id) then
      local from = call('ZSCORE', failing, endpoint.id) and failingFrom or 0
      call('ZADD', ring, from + call('INCR', turns), endpoint.id)
    end
  end
end
for name, n in pairs(counts) do call('HINCRBY', ledger, 'webhook:' .. name, n) end
return reply
