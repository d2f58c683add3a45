-- Deletes the entries of a log that every group has acknowledged, and no other: up to the oldest entry that is pending in a
-- group or has not been delivered to it yet.
--
-- KEYS[1]  log (stream)
--
-- Reply: how many were deleted.
local log = KEYS[1]
local oldest, oldestMs, oldestNumber
for _, group in ipairs(redis.call('XINFO', 'GROUPS', log)) do
  local told = {}
  for at = 1, #group, 2 do told[group[at]] = group[at + 1] end
  local pending = redis.call('XPENDING', log, told.name)
  local ms, number = string.match(pending[2] or told['last-delivered-id'], '(%d+)-(%d+)')
  ms, number = tonumber(ms), tonumber(number)
  if not pending[2] then number = number + 1 end
  if not oldest or ms < oldestMs or (ms == oldestMs and number < oldestNumber) then
    oldest, oldestMs, oldestNumber = string.format('%.0f-%.0f', ms, number), ms, number
  end
end
if not oldest then return 0 end
return redis.call('XTRIM', log, 'MINID', oldest)
