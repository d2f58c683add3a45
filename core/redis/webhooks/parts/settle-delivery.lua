-- Part of finish.lua: what became of a delivery.

-- Due time and reason are empty before a first attempt: nothing to write where they stay so. The state of a delivery that is
-- there is known, so not every field is a new one. What has failed stands in a set of its endpoint, by creation as in the log.
local function settle(lane, one)
  local state, fields = one.state, { 's', one.state, 'n', one.made, 'a', one.attempts }
  if one.due ~= '' or one.reason ~= '' or one.made ~= '1' then
    fields[7], fields[8], fields[9], fields[10] = 'd', one.due, 'r', one.reason
  end
  if call('HSET', one.delivery, unpack(fields)) < #fields / 2 then
    local created = state == 'failed' and call('ZSCORE', lane.log, one.id)
    if state == 'waiting' then call('ZADD', lane.retries, one.due, one.id) end
    if created then
      call('ZADD', lane.failures, created, one.id)
      call('PEXPIRE', lane.failures, call('PTTL', lane.log))
    end
  else
    call('DEL', one.delivery)
    if state == 'waiting' then state = 'failed' end
  end
  if state ~= 'waiting' then count(counts, state) end
end
