-- Part of commit.lua: assigns the seconds of statusUpdatedAt for each company, and writes its clock once, at the end.
--
-- statusUpdatedAt never goes backwards within a company and only a limited number of shipments share one second, so that the
-- reconciliation procedure of document 1 always gets past a full page; in a burst it runs ahead of the clock. It skips the
-- hour that the autumn clock change repeats, since those local times have been used already.
local clocks = {}

local function stamp(key)
  local clock = clocks[key]
  if not clock then
    local last = redis.call('HMGET', key, 's', 'n')
    clock = {second = tonumber(last[1]) or 0, used = tonumber(last[2]) or 0}
    clocks[key] = clock
  end
  local second, used = clock.second, clock.used
  if now > second then second, used = now, 1
  elseif used < share then used = used + 1
  else second, used = second + 1, 1 end
  if second >= skipFrom and second < skipTo then second, used = skipTo, 1 end
  clock.used = used
  if second ~= clock.second then clock.second, clock.text = second, nil end
  clock.text = clock.text or string.format('%d', second)
  return second, clock.text
end

local function keepClocks()
  for key, clock in pairs(clocks) do redis.call('HSET', key, 's', clock.second, 'n', clock.used) end
end
