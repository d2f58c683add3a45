#!lua
-- Makes shipments findable by references. Repeating it changes nothing.
--
-- KEYS[i]     reference (string): one candidate a line
-- ARGV[1]     candidates a reference may hold; one more is left out, the reference is ambiguous long before
-- ARGV[2i]    start of the candidate line that identifies the shipment
-- ARGV[2i+1]  the rest of the line
--
-- Reply: how many lines were added.
local limit, added = ARGV[1] + 0, 0
assert(#ARGV == 1 + 2 * #KEYS, 'half a line')
for at = 1, #KEYS do
  local start = ARGV[2 * at]
  local line = start .. ARGV[2 * at + 1]
  local lines = redis.call('GET', KEYS[at])
  if not lines then
    redis.call('SET', KEYS[at], line)
    added = added + 1
  elseif not string.find('\n' .. lines, '\n' .. start, 1, true) then
    local _, count = string.gsub(lines, '\n', '')
    if count + 1 < limit then
      redis.call('APPEND', KEYS[at], '\n' .. line)
      added = added + 1
    end
  end
end
return added
