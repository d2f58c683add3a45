-- Part of create.lua and commit.lua: tells the processes that keep rows (read-columns.ts) which rows have changed.
--
-- A row log: 8 bytes of how many ranks have gone, then ranks of 4 bytes, the latest last. 16,382 of them stay at most, 8,192
-- at least.
local function noteRanks(log, ranks)
  local length = redis.call('APPEND', log, ranks)
  if length == #ranks then redis.call('SET', log, struct.pack('<d', 0) .. ranks) end
  if length > 65536 then
    local gone = struct.unpack('<d', redis.call('GETRANGE', log, 0, 7)) + (length - 32776) / 4
    redis.call('SET', log, struct.pack('<d', gone) .. redis.call('GETRANGE', log, -32768, -1))
  end
end
