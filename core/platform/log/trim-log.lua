#!lua flags=allow-oom
-- Deletes the entries of a log that every group has acknowledged, and no other: up to the oldest entry that is pending in a
-- group or has not been delivered to it yet. Nothing is deleted while a group is missing. Runs with full memory too: it
-- only frees memory.
--
-- KEYS[1]  log (stream)    KEYS[2]  counts of the log (hash): `logged`, and by group what is done
-- ARGV[1…] the groups that must be there; others, such as a reader of one's own, count as well
--
-- A group that has nothing left has done all there was: its count says so from here on, whatever was removed by hand.
--
-- Reply: how many are left.
local log, call, found = KEYS[1], redis.call, {}
if call('EXISTS', log) == 0 then return 0 end
for _, group in ipairs(call('XINFO', 'GROUPS', log)) do
  local info = {}
  for at = 1, #group, 2 do info[group[at]] = group[at + 1] end
  found[info.name] = info
end
local oldest, oldestMs, oldestNumber
for _, name in ipairs(ARGV) do
  if not found[name] then return call('XLEN', log) end
end
for name, info in pairs(found) do
  local first = call('XPENDING', log, name)[2]
  local last = info['last-delivered-id']
  local ms, number = string.match(first or last, '(%d+)-(%d+)')
  ms, number = tonumber(ms), tonumber(number)
  if not first then
    number = number + 1
    if #call('XRANGE', log, '(' .. last, '+', 'COUNT', 1) == 0 then
      local logged, done = unpack(call('HMGET', KEYS[2], 'logged', name))
      if logged and logged ~= done then call('HSET', KEYS[2], name, logged) end
    end
  end
  if not oldest or ms < oldestMs or (ms == oldestMs and number < oldestNumber) then
    oldest, oldestMs, oldestNumber = string.format('%.0f-%.0f', ms, number), ms, number
  end
end
call('XTRIM', log, 'MINID', oldest)
return call('XLEN', log)
