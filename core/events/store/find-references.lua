#!lua flags=no-writes
-- Reads references that had no candidates a moment ago: a compact one may have become lines meanwhile, and lines compact. Both are
-- read at one moment, so a reference that finds a shipment is found in either form.
--
-- KEYS     for each reference: its candidates (string, a line each, as in register.lua), then a bucket of each generation (hash),
--          the newest first
-- ARGV[1]  generations
-- then for each reference its name in a bucket
--
-- Reply: for each reference two: its lines, its value in the newest bucket that has it; null where there is none.
local call, per, reply = redis.call, ARGV[1] + 1, {}
assert(#KEYS % per == 0 and #ARGV == 1 + #KEYS / per, 'a key or a name too few')
for place = 0, #KEYS / per - 1 do
  local value = false
  for bucket = place * per + 2, (place + 1) * per do
    value = value or call('HGET', KEYS[bucket], ARGV[place + 2])
  end
  reply[2 * place + 1], reply[2 * place + 2] = call('GET', KEYS[place * per + 1]), value
end
return reply
