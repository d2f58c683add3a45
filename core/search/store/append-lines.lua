#!lua
-- Appends lines to the search lines of a channel (search-lines.ts).
--
-- KEYS[1]  how far the lines reach (hash): `part` = number of the last part, `upTo` = the highest id that was read for them
-- KEYS[2]  the last part (string)    KEYS[3]  the next one
-- ARGV[1]  number of the last part    ARGV[2]  `upTo` as the caller knows it, empty = further lines of shipments that have some
-- ARGV[3]  `upTo` from now on    ARGV[4]  bytes of a part    ARGV[5]  the lines
--
-- Reply: 1, or 0 and nothing done when another process was faster.
local call, last, bytes, lines = redis.call, ARGV[1] + 0, ARGV[4] + 0, ARGV[5]
local expected, upTo = ARGV[2], ARGV[3]
assert(KEYS[3] and last >= 0 and bytes >= 1 and (expected == '' or upTo + 0 >= expected + 0), 'a number')
local isSame = tonumber(call('HGET', KEYS[1], 'part') or 0) == last
local known = tonumber(call('HGET', KEYS[1], 'upTo') or 0)
if not isSame or (expected ~= '' and known ~= expected + 0) then return 0 end
local held = call('STRLEN', KEYS[2])
if #lines > 0 and held == 0 then
  -- Not appended: Redis would reserve twice the bytes.
  call('SET', KEYS[2], lines)
elseif #lines > 0 and held + #lines <= bytes then
  call('APPEND', KEYS[2], lines)
elseif #lines > 0 then
  call('SET', KEYS[3], lines)
  call('HSET', KEYS[1], 'part', string.format('%d', last + 1))
end
if expected ~= '' then call('HSET', KEYS[1], 'upTo', upTo) end
return 1
