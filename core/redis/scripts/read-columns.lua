#!lua flags=no-writes
-- Reads what has changed in the rows of some channels since a process last looked, and some bitmaps, at one moment.
--
-- KEYS[1..n]   row logs: 8 bytes of how many entries have gone, then the ranks of changed rows, 4 bytes each
-- KEYS[n+1..]  bitmaps
-- ARGV[1]      hash tag of the partition; the blocks' keys are built from it
-- ARGV[2]      rows in a block    ARGV[3]  entries read at most    ARGV[4]  entries read again, to compare
-- then, for each channel, two: its id, how many entries have been read of its log (-1 = nothing is known yet)
--
-- Reply: for each channel four: how many entries its log has had; the entries read again, null where the log does not go
-- on from what is known; the new entries; the rows (16 bytes each) of the ranks among these, in the order they first
-- appear. Then each bitmap.
local tag, per, room, again = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local channels = (#ARGV - 4) / 2
local reply = {}

local function rowsOf(channel, entries)
  local rows, seen = {}, {}
  for at = 1, #entries, 4 do
    local rank = struct.unpack('<I4', entries, at)
    if not seen[rank] then
      seen[rank] = true
      local start = (rank % per) * 16
      rows[#rows + 1] = redis.call('GETRANGE', tag .. ':b:' .. channel .. ':' .. math.floor(rank / per), start, start + 15)
    end
  end
  return table.concat(rows)
end

for at = 1, channels do
  local channel, known = ARGV[3 + 2 * at], tonumber(ARGV[4 + 2 * at])
  local log = KEYS[at]
  local length = redis.call('STRLEN', log)
  local gone = length == 0 and 0 or struct.unpack('<d', redis.call('GETRANGE', log, 0, 7))
  local count = gone + math.max(0, length - 8) / 4
  local before, entries = false, ''
  if known >= gone and known <= count then
    local place, fresh = 8 + (known - gone) * 4, math.min(room, count - known)
    before = redis.call('GETRANGE', log, math.max(8, place - 4 * again), place - 1)
    if fresh > 0 then entries = redis.call('GETRANGE', log, place, place + 4 * fresh - 1) end
    room = room - fresh
  end
  reply[4 * at - 3] = string.format('%.0f', count)
  reply[4 * at - 2] = before
  reply[4 * at - 1] = entries
  reply[4 * at] = rowsOf(channel, entries)
end
for at = channels + 1, #KEYS do reply[3 * channels + at] = redis.call('GET', KEYS[at]) end
return reply
