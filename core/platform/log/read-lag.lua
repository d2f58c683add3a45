#!lua flags=no-writes
-- How far groups are behind a log: events or changes that they have not done, those that wait for their next try included.
--
-- KEYS[1]  log (stream)    KEYS[2]  counts of the log (hash): `logged`, and by group what is done
-- KEYS[3…] for each group: what waits for its next try (sorted set by the time of its entry)
-- ARGV[1…] the groups
--
-- A log that is not counted, and what was appended by hand, is counted by entries. What Redis calls a group's lag is not
-- exact after a restart from the append-only file.
--
-- Reply: for each group two: how many it has not done, and the oldest of them (milliseconds, '' when there are none).
local log, call, found, reply = KEYS[1], redis.call, {}, {}
local length = call('XLEN', log)
if call('EXISTS', log) == 1 then
  for _, group in ipairs(call('XINFO', 'GROUPS', log)) do
    local info = {}
    for at = 1, #group, 2 do info[group[at]] = group[at + 1] end
    found[info.name] = info
  end
end

-- Of what stands in the log.
local function look(name, info)
  local last = info['last-delivered-id']
  local first = call('XPENDING', log, name)[2]
  local unread = call('XRANGE', log, '(' .. last, '+', 'COUNT', 1)[1]
  if not first and not unread then return 0 end
  local logged, done = unpack(call('HMGET', KEYS[2], 'logged', name))
  local open = info.pending
  if logged then open = math.max(open + (unread and 1 or 0), logged - (done or 0))
  elseif unread then open = open + math.min(length, info.lag or length) end
  return open, string.match(first or unread[1], '^%d+')
end

for at, name in ipairs(ARGV) do
  local open, oldest = 0, nil
  if found[name] then open, oldest = look(name, found[name]) end
  local retries = KEYS[2 + at]
  open = open + call('ZCARD', retries)
  local waiting = call('ZRANGE', retries, 0, 0, 'WITHSCORES')[2]
  if waiting and (not oldest or tonumber(waiting) < tonumber(oldest)) then oldest = waiting end
  reply[2 * at - 1], reply[2 * at] = open, oldest or ''
end
return reply
