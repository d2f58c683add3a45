-- Part of create.lua, commit.lua, remove.lua and restore.lua: records which rows have changed, for the processes that keep rows
-- (read-columns.ts).
--
-- A row log: 8 bytes with the number of ranks trimmed so far, then ranks of 4 bytes, the latest last. Between 8,192 and 16,382
-- of them are kept.
local function noteRanks(log, ranks)
  local length = redis.call('APPEND', log, ranks)
  if length == #ranks then redis.call('SET', log, struct.pack('<d', 0) .. ranks) end
  local held = (length - 8) / 4
  if held > 16382 then
    local gone = struct.unpack('<d', redis.call('GETRANGE', log, 0, 7)) + held - 8192
    redis.call('SET', log, struct.pack('<d', gone) .. redis.call('GETRANGE', log, -32768, -1))
  end
end
