-- Reads the versions of all blocks of some channels, and some blocks, at one moment.
--
-- KEYS[1..n]   versions (hash: block -> how often it has changed)
-- KEYS[n+1..]  blocks
-- ARGV[1]      n
--
-- Reply: n lists of block, version, block, version ...; then each block's rows.
local reply = {}
for at = 1, #KEYS do
  reply[at] = redis.call(at <= tonumber(ARGV[1]) and 'HGETALL' or 'GET', KEYS[at])
end
return reply
