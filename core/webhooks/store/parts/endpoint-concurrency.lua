-- Part of finish.lua: the concurrency of endpoints, which adapts (concurrency.ts), their pauses, and their way back into the rings.
--
-- KEYS[14] concurrency of endpoints (hash): the number, where it last fell, when it fell, when it was last in use, as one text
-- KEYS[15] paused endpoints (sorted set by the end of their pause)
-- Five texts of ARGV[8] for each endpoint: its highest concurrency; successes; what its concurrency is multiplied by, '' when it does
-- not fall; when the latest request that makes it fall was sent (milliseconds, '' when it does not fall); until when the endpoint
-- is paused (milliseconds, '' when it is not)
local concurrencies, pauses = KEYS[14], KEYS[15]

local function readSigns(endpoint, at)
  endpoint.most, endpoint.good, endpoint.factor = tonumber(list[at]), tonumber(list[at + 1]), tonumber(list[at + 2])
  endpoint.fallAt, endpoint.pausedUntil = tonumber(list[at + 3]), tonumber(list[at + 4])
  assert(endpoint.most and endpoint.good and not endpoint.factor == not endpoint.fallAt, 'malformed concurrency')
end

-- An endpoint with deliveries left returns to the rings, a failing one behind the healthy ones.
local function returnToRings(endpoint, turn)
  local from = endpoint.fails and failingFrom or 0
  if call('EXISTS', endpoint.queue) == 1 and not (turn and (turn >= failingFrom) == endpoint.fails) then
    call('ZADD', firstRing, from + (turn and turn % failingFrom or call('INCR', turns)), endpoint.id)
  end
  local first = call('ZRANGE', endpoint.retries, 0, 0, 'WITHSCORES')
  if first[2] then call('ZADD', retryRing, from + first[2], endpoint.id) end
end

-- Starts over after a rest and after an outage of the endpoint: what made it fall then says nothing about what it can take now. A
-- higher limit is found like the first one, unless the concurrency has fallen before.
local function readConcurrency(text, endpoint)
  local concurrency, fell, fellAt, usedAt = string.match(text or '', '^(%S+) (%S+) (%S+) (%S+)$')
  local wasAway = endpoint.isCured and endpoint.failedSince and now >= endpoint.failedSince + away
  if not concurrency or wasAway or now > usedAt + concurrencyLife then
    return { concurrency = math.min(startConcurrency, endpoint.most), fell = endpoint.most, fellAt = 0 }
  end
  fell = fellAt == '0' and endpoint.most or tonumber(fell)
  concurrency = math.min(math.max(startConcurrency, tonumber(concurrency)), endpoint.most)
  return { concurrency = concurrency, fell = fell, fellAt = tonumber(fellAt) }
end

-- Whether the concurrency has changed, or is in use.
local function adjust(one, endpoint, inUse)
  if endpoint.fallAt then
    -- The result of a request that was sent before the last fall belongs to the concurrency before it.
    if endpoint.fallAt <= one.fellAt then return false end
    one.concurrency = math.max(math.min(startConcurrency, endpoint.most), one.concurrency * endpoint.factor)
    one.fell, one.fellAt = one.concurrency, now
    return true
  end
  if 2 * inUse < one.concurrency then return false end
  local grown = one.concurrency + endpoint.good / one.concurrency
  if one.concurrency < one.fell then grown = math.min(one.fell, one.concurrency + 2 * endpoint.good) end
  one.concurrency = math.min(grown, endpoint.most)
  return true
end

-- before: what was under way, by field of the hash. Where little was, there is nothing to learn from a success.
local function recordConcurrencies(endpoints, before)
  local asked, ids, kept, ends = {}, {}, {}, {}
  for _, endpoint in ipairs(endpoints) do
    if endpoint.fallAt or (endpoint.good > 0 and 2 * (before[endpoint.id] or 0) >= math.min(startConcurrency, endpoint.most)) then
      asked[#asked + 1], ids[#ids + 1] = endpoint, endpoint.id
    end
    if endpoint.pausedUntil then ends[#ends + 1], ends[#ends + 2] = endpoint.pausedUntil, endpoint.id end
  end
  for at, text in ipairs(#ids > 0 and call('HMGET', concurrencies, unpack(ids)) or {}) do
    local endpoint, one = asked[at], readConcurrency(text, asked[at])
    if adjust(one, endpoint, before[endpoint.id]) then
      kept[#kept + 1], kept[#kept + 2] = endpoint.id, string.format('%.3f %.3f %.0f %.0f', one.concurrency, one.fell, one.fellAt, now)
    end
  end
  if #kept > 0 then call('HSET', concurrencies, unpack(kept)) end
  if #ends > 0 then call('ZADD', pauses, 'GT', unpack(ends)) end
end
