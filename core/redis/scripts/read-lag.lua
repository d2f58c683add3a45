-- How far each group is behind a log: what it has not acknowledged, counted in events or changes and not in entries, and
-- what waits for its next try.
--
-- KEYS[1]  log (stream)    KEYS[2…]  for each group: what waits for its next try (sorted set by the time of the entry)
-- ARGV[1…] the groups
--
-- The entries tell: `k`, how many stand in one, and `n`, how many the log has had with it. What Redis calls a group's lag is
-- not exact after a restart from the append-only file.
--
-- Reply: how many the log holds; for each group two: how many it has not done, and the oldest of them (milliseconds, '' when
-- there are none).
local log, call = KEYS[1], redis.call

local function read(entry)
  local fields = entry[2]
  if fields[3] ~= 'k' then return nil, 1 end
  return tonumber(fields[2]), tonumber(fields[4])
end

local length = call('XLEN', log)
local first, newest = call('XRANGE', log, '-', '+', 'COUNT', 1)[1], call('XREVRANGE', log, '+', '-', 'COUNT', 1)[1]
local last = newest and read(newest)

-- From an entry to the end.
local function countFrom(entry)
  local number, size = read(entry)
  return number and last and last - number + size
end

local places, reply = {}, { first and (countFrom(first) or length) or 0 }
for at, name in ipairs(ARGV) do places[name] = at end
for at = 1, #ARGV do reply[2 * at], reply[2 * at + 1] = 0, '' end
if call('EXISTS', log) == 0 then return reply end
for _, group in ipairs(call('XINFO', 'GROUPS', log)) do
  local told = {}
  for at = 1, #group, 2 do told[group[at]] = group[at + 1] end
  local place = places[told.name]
  if place then
    local open, oldest = 0, nil
    local pending = call('XPENDING', log, told.name, '-', '+', 10000)
    for _, one in ipairs(pending) do
      local entry = call('XRANGE', log, one[1], one[1])[1]
      local _, size = nil, 1
      if entry then _, size = read(entry) end
      open = open + size
    end
    if pending[1] then oldest = string.match(pending[1][1], '%d+') end
    local unread = call('XRANGE', log, '(' .. told['last-delivered-id'], '+', 'COUNT', 1)[1]
    if unread then
      open = open + (countFrom(unread) or math.min(length, told.lag or length))
      oldest = oldest or string.match(unread[1], '%d+')
    end
    local retries = KEYS[1 + place]
    open = open + call('ZCARD', retries)
    local waiting = call('ZRANGE', retries, 0, 0, 'WITHSCORES')[2]
    if waiting and (not oldest or tonumber(waiting) < tonumber(oldest)) then oldest = waiting end
    reply[2 * place], reply[2 * place + 1] = open, oldest or ''
  end
end
return reply
