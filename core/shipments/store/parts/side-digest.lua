-- Part of read-whole.lua and remove.lua: tells whether what is kept beside a shipment has changed.
-- @return SHA-1 of its notifications (list), stock releases and told topics (hashes); empty when there are none
local function sideDigest(notifications, releases, topics)
  if redis.call('EXISTS', notifications, releases, topics) == 0 then return '' end
  local parts = {}
  for _, list in ipairs({redis.call('LRANGE', notifications, 0, -1), redis.call('HGETALL', releases), redis.call('HGETALL', topics)}) do
    parts[#parts + 1] = #list
    for _, text in ipairs(list) do parts[#parts + 1] = #text .. ':' .. text end
  end
  return redis.sha1hex(table.concat(parts, ' '))
end
