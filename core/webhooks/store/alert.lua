#!lua
-- Puts alerts about failing endpoints into the outbox, each exactly once.
--
-- KEYS[1]  failing endpoints (sorted set by first failure)    KEYS[2]  endpoints warned (set)
-- KEYS[3]  alerts (stream)
-- KEYS[4]  endpoints alerted since their last success (hash: the first failure)
-- KEYS[5]  last failures (hash by endpoint)
-- ARGV[1]  the service clock, milliseconds
-- then, 500 times at most, three: an endpoint, the first failure the alert is about, and
--   'warning' (24 hours), 'disabled' (3 days: its clock stops), 'forget' (its clock stops without an alert) or
--   'gone' (the same, and nothing is kept of it)
--
-- An endpoint that has succeeded, or begun to fail again, in between is left alone.
-- No key is touched again once it may be empty: while its slot is being migrated, a missing key counts as moved.
--
-- Reply: how many alerts were put into the outbox.
local failing, warned, alerts, alerted, lastFailures = unpack(KEYS, 1, 5)
local MOST, KINDS, call = 500, { warning = true, disabled = true, forget = true, gone = true }, redis.call
local count = (#ARGV - 1) / 3
assert(tonumber(ARGV[1]) and count % 1 == 0 and count <= MOST and #KEYS == 5, 'malformed arguments')
for at = 2, #ARGV, 3 do
  assert(tonumber(ARGV[at + 1]) and KINDS[ARGV[at + 2]], 'malformed alert')
end

local put, ended, over, gone = 0, {}, {}, {}
for at = 2, #ARGV, 3 do
  local endpoint, since, kind = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if not over[endpoint] and tonumber(call('ZSCORE', failing, endpoint)) == tonumber(since) then
    if kind == 'disabled' or (kind == 'warning' and call('SADD', warned, endpoint) == 1) then
      call('XADD', alerts, '*', 'endpointId', endpoint, 'kind', kind, 'sinceMs', since, 'atMs', ARGV[1])
      call('HSET', alerted, endpoint, since)
      put = put + 1
    end
    if kind ~= 'warning' then ended[#ended + 1], over[endpoint] = endpoint, true end
    if kind == 'gone' then gone[#gone + 1] = endpoint end
  end
end
if #ended > 0 then
  call('ZREM', failing, unpack(ended))
  call('SREM', warned, unpack(ended))
end
if #gone > 0 then call('HDEL', lastFailures, unpack(gone)) end
return put
