#!lua flags=no-writes
-- Reads what has changed in the rows of some channels since a process last looked, and some bitmaps, at one point in time.
--
-- KEYS[1..n]   row logs: 8 bytes of how many entries have gone, then the ranks of changed rows, 4 bytes each
-- KEYS[n+1..m] bitmaps
-- KEYS[m+1..]  blocks of rows that may have changed, those of one channel after those of the other
-- ARGV[1]      rows in a block    ARGV[2]  entries read at most    ARGV[3]  entries read again, to compare
-- ARGV[4]      n, row logs    ARGV[5]  bitmaps
-- then, for each channel: how many entries have been read of its log (-1 = nothing is known yet), how many blocks are given, their
--   numbers
--
-- Reply: for each channel four: how many entries its log has had; the entries read again, null where the log does not go
-- on from what is known; the new entries; the rows (16 bytes each, zeros where the block was dropped) of the ranks among these, in the order they first
-- appear, null if one of them is in a block that was not given. Then each bitmap.
local call, per, capacity, again = redis.call, ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0
local channels, bitmaps, reply = ARGV[4] + 0, ARGV[5] + 0, {}

local function rowsOf(blocks, entries)
  local rows, seen = {}, {}
  for at = 1, #entries, 4 do
    local rank = struct.unpack('<I4', entries, at)
    if not seen[rank] then
      local block, start = blocks[math.floor(rank / per)], (rank % per) * 16
      if not block then return false end
      seen[rank] = true
      local row = call('GETRANGE', block, start, start + 15)
      rows[#rows + 1] = #row == 16 and row or string.rep('\0', 16)
    end
  end
  return table.concat(rows)
end

local at, key = 6, channels + bitmaps
for channel = 1, channels do
  local log, known, given, blocks = KEYS[channel], ARGV[at] + 0, ARGV[at + 1] + 0, {}
  for index = 1, given do blocks[ARGV[at + 1 + index] + 0] = KEYS[key + index] end
  at, key = at + 2 + given, key + given
  local length = call('STRLEN', log)
  local gone = length == 0 and 0 or struct.unpack('<d', call('GETRANGE', log, 0, 7))
  local count = gone + math.max(0, length - 8) / 4
  local before, entries = false, ''
  if known >= gone and known <= count then
    local offset, fresh = 8 + (known - gone) * 4, math.min(capacity, count - known)
    before = call('GETRANGE', log, math.max(8, offset - 4 * again), offset - 1)
    if fresh > 0 then entries = call('GETRANGE', log, offset, offset + 4 * fresh - 1) end
    capacity = capacity - fresh
  end
  reply[4 * channel - 3] = string.format('%.0f', count)
  reply[4 * channel - 2] = before
  reply[4 * channel - 1] = entries
  reply[4 * channel] = rowsOf(blocks, entries)
end
for bitmap = 1, bitmaps do reply[4 * channels + bitmap] = call('GET', KEYS[channels + bitmap]) end
return reply
