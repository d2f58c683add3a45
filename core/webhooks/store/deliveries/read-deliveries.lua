#!lua flags=no-writes
-- Reads deliveries that are about to be sent.
--
-- KEYS[i]  delivery (hash)
--
-- Reply: one text, for each delivery five lines: generation, attempts made, what it is without its fact (words, as stored; ''
--   if it no longer exists), its fact (JSON; '' if an earlier one in the reply has the same event), attempts (JSON).
local rows, events = {}, {}
for at = 1, #KEYS do
  local kept = redis.call('HMGET', KEYS[at], 'g', 'n', 'i', 'a')
  -- Words and fact are two lines as they are stored; the deliveries of an event share its fact.
  local frozen = kept[3] or '\n'
  local event = string.match(frozen, '^%S+ (%S+)')
  if event and events[event] then frozen = string.match(frozen, '^[^\n]*\n') end
  if event then events[event] = true end
  local row = 4 * (at - 1)
  rows[row + 1], rows[row + 2], rows[row + 3], rows[row + 4] = kept[1] or 1, kept[2] or 0, frozen, kept[4] or '[]'
end
return table.concat(rows, '\n')
