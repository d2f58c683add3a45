-- Part of finish.lua: the clocks of failing endpoints, their last failures, and the alert that one works again.
--
-- KEYS[11] last failures of failing endpoints (hash: an attempt as a line of the log)    KEYS[12] alerts (stream)
-- KEYS[13] endpoints alerted since their last success (hash: the first failure)
--
-- No key is touched again once it may be empty: while its slot is being migrated, a missing key counts as moved.
local lastFailures, alerts, alerted = unpack(KEYS, 11, 13)

-- The first success after an alert is followed by another alert, once: the mark goes in the same step.
local function raiseRecovered(worked)
  local recovered = {}
  for at, since in ipairs(call('HMGET', alerted, unpack(worked))) do
    if since then
      recovered[#recovered + 1] = worked[at]
      call('XADD', alerts, '*', 'endpointId', worked[at], 'kind', 'recovered', 'sinceMs', since, 'atMs', now)
    end
  end
  if #recovered > 0 then call('HDEL', alerted, unpack(recovered)) end
end

-- Of each endpoint: `failed` since its last success in this call, when it did not fail before; `isCured` by a success; `fails` in the
-- end; `hasWorked` at all; `failure`, its last one as a line of the log.
local function recordHealth(endpoints)
  local worked, unwarned, healthy, failures = {}, {}, {}, {}
  for _, endpoint in ipairs(endpoints) do
    if endpoint.failed then call('ZADD', failing, now, endpoint.id) end
    if endpoint.failure then failures[#failures + 1], failures[#failures + 2] = endpoint.id, endpoint.failure end
    if endpoint.hasWorked then worked[#worked + 1] = endpoint.id end
    if endpoint.isCured then unwarned[#unwarned + 1] = endpoint.id end
    if endpoint.isCured and not endpoint.fails then healthy[#healthy + 1] = endpoint.id end
  end
  if #worked > 0 then raiseRecovered(worked) end
  if #failures > 0 then call('HSET', lastFailures, unpack(failures)) end
  if #unwarned > 0 then call('SREM', warned, unpack(unwarned)) end
  if #healthy > 0 then
    call('ZREM', failing, unpack(healthy))
    call('HDEL', lastFailures, unpack(healthy))
  end
end
