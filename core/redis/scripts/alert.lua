#!lua
-- Puts alerts about failing endpoints into the outbox, each exactly once.
--
-- KEYS[1]  failing endpoints (sorted set by first failure)    KEYS[2]  endpoints warned (set)
-- KEYS[3]  alerts (stream)
-- ARGV[1]  the service clock, milliseconds
-- then, for each endpoint, three: its id, the first failure the alert is about, and
--   'warning' (24 hours), 'disabled' (3 days: its clock stops) or 'forget' (its clock stops without an alert)
--
-- An endpoint that has succeeded, or begun to fail anew, in between is left alone.
--
-- Reply: how many alerts were put into the outbox.
local failing, warned, alerts = KEYS[1], KEYS[2], KEYS[3]
local put = 0

local function alert(endpoint, kind, since)
  redis.call('XADD', alerts, '*', 'endpointId', endpoint, 'kind', kind, 'sinceMs', since, 'atMs', ARGV[1])
  put = put + 1
end

for at = 2, #ARGV, 3 do
  local endpoint, since, kind = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if tonumber(redis.call('ZSCORE', failing, endpoint) or -1) == tonumber(since) then
    if kind ~= 'forget' and (kind == 'disabled' or redis.call('SADD', warned, endpoint) == 1) then
      alert(endpoint, kind, since)
    end
    if kind ~= 'warning' then
      redis.call('ZREM', failing, endpoint)
      redis.call('SREM', warned, endpoint)
    end
  end
end
return put
