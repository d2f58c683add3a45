-- Part of lease.lua: what each named endpoint may begin now, and the pauses of those that may not begin more.
--
-- KEYS[7]  concurrency of endpoints (hash): the number, where it last fell, when it fell, when it was last in use, as one text
-- KEYS[8]  rates of endpoints (hash): what may begin, and when that was counted, as one text
-- KEYS[9]  paused endpoints (sorted set by the end of their pause)
local concurrencies, rates, pauses = KEYS[7], KEYS[8], KEYS[9]

-- A limit of its own counts an endpoint's requests in slots and outside of them together.
local function capacityOf(one, concurrency, most, inAll, underWay, besides)
  local limit = one.isSilent and silentLimit or math.min(concurrency, most, one.fails and failingLimit or most)
  return math.floor(math.min(limit - underWay, inAll > 0 and inAll - underWay - besides or math.huge))
end

-- What has gathered since it was last counted, up to the burst.
local function tokensOf(one)
  local tokens, at = string.match(call('HGET', rates, one.id) or '', '^(%S+) (%S+)$')
  if not tokens then return one.burst end
  return math.min(one.burst, tonumber(tokens) + math.max(0, now - at) * one.perSecond / 1000)
end

local function readCapacities()
  local known, fields = {}, {}
  for _, id in ipairs(ids) do fields[#fields + 1], fields[#fields + 2] = id, 'w ' .. id end
  local underWay, stored = call('HMGET', flight, unpack(fields)), call('HMGET', concurrencies, unpack(ids))
  local since, ends = call('ZMSCORE', failing, unpack(ids)), call('ZMSCORE', pauses, unpack(ids))
  for at, id in ipairs(ids) do
    local one = { id = id, fails = since[at] ~= false, taken = 0 }
    local silent, most, inAll, burst, perSecond, share = string.match(terms[at], '^([01]) (%d+) (%d+) (%d+) ([%d.]+) (%d+)$')
    assert(silent, 'malformed terms')
    one.isSilent, one.burst, one.perSecond = silent == '1', tonumber(burst), tonumber(perSecond)
    local own, besides = tonumber(underWay[2 * at - 1]) or 0, tonumber(underWay[2 * at]) or 0
    if one.isSilent then own, besides, one.field = besides, own, 'w ' .. id else one.field = id end
    local concurrency, usedAt = string.match(stored[at] or '', '^(%S+) %S+ %S+ (%S+)$')
    concurrency = concurrency and now <= usedAt + concurrencyLife and math.max(startConcurrency, tonumber(concurrency)) or startConcurrency
    one.before, one.capacity = own, capacityOf(one, concurrency, tonumber(most), tonumber(inAll), own, besides)
    if ends[at] and tonumber(ends[at]) > now then
      one.capacity = 0
    elseif one.capacity > 0 then
      if one.burst > 0 then one.tokens = tokensOf(one) end
      local may = math.min(tonumber(share), one.tokens and math.floor(one.tokens) or one.capacity)
      if may < one.capacity then one.capacity, one.isHeldBack = may, true end
    end
    known[id] = one
  end
  return known
end

-- What is under way of each endpoint after this call, as fields and values.
local function flightsOf(known)
  local flights = {}
  for _, one in pairs(known) do
    if one.taken > 0 then flights[#flights + 1], flights[#flights + 2] = one.field, one.before + one.taken end
  end
  return flights
end

-- Those held back by their rate or by their tenant's share, and not by their concurrency, are not brought back by a result.
-- Returns when the first of these pauses ends.
local function pauseHeldBack(known)
  local held, spent, first = {}, {}, nil
  for id, one in pairs(known) do
    if one.tokens and one.taken > 0 then
      spent[#spent + 1], spent[#spent + 2] = id, string.format('%.3f %.0f', one.tokens - one.taken, now)
    end
    if one.isHeldBack and one.taken >= one.capacity then
      local wait = SHARE_PAUSE_MS
      if one.tokens then wait = math.max(1, math.ceil((one.burst - one.tokens + one.taken) * 1000 / one.perSecond)) end
      held[#held + 1], held[#held + 2], first = now + wait, id, math.min(first or math.huge, now + wait)
    end
  end
  if #spent > 0 then call('HSET', rates, unpack(spent)) end
  if #held > 0 then call('ZADD', pauses, unpack(held)) end
  return first and string.format('%.0f', first) or ''
end
