-- Part of finish.lua: what became of a delivery.

-- Its first result makes two new fields of a delivery, each later one none, and three tell that it is gone. Due time and reason
-- are written once there is one. What has failed stands in a set of its endpoint, by creation as in the log.
local function settle(endpoint, one)
  local state = one.state
  local new = call('HSET', one.delivery, 's', state, 'n', one.made, 'a', one.attempts)
  if new < 3 then
    if new == 0 or one.due ~= '' or one.reason ~= '' then call('HSET', one.delivery, 'd', one.due, 'r', one.reason) end
    local created = state == 'failed' and call('ZSCORE', endpoint.log, one.id)
    if state == 'waiting' then call('ZADD', endpoint.retries, one.due, one.id) end
    if created then
      call('ZADD', endpoint.failures, created, one.id)
      call('PEXPIRE', endpoint.failures, call('PTTL', endpoint.log))
    end
  else
    call('DEL', one.delivery)
    if state == 'waiting' then state = 'failed' end
  end
  if state ~= 'waiting' then count(counts, state) end
end
