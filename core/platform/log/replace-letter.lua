#!lua
-- Puts a dead letter with another entry in a letter's place. It is the log's newest one then, under an id of its own.
--
-- KEYS[1]  dead letters of a log (stream)
-- ARGV[1]  stream id of the letter    ARGV[2]  its new entry (JSON)
--
-- Reply: 1 = replaced, 0 = there is no such letter.
assert(#ARGV == 2 and ARGV[2] ~= '', 'a letter and an entry')
local letter = redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1])[1]
if not letter then return 0 end
local fields = letter[2]
for at = 1, #fields, 2 do
  if fields[at] == 'entry' then fields[at + 1] = ARGV[2] end
end
redis.call('XADD', KEYS[1], '*', unpack(fields))
redis.call('XDEL', KEYS[1], ARGV[1])
return 1
