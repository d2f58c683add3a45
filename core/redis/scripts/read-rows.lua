#!lua flags=no-writes
-- Reads the rows of some shipments of a channel.
--
-- KEYS[1]  index by id
-- ARGV[1]  hash tag of the partition; the blocks' keys are built from it
-- ARGV[2]  channel id    ARGV[3]  rows in a block
-- then the members of the index (ids of twelve digits)
--
-- Reply: for each its row (16 bytes), empty where there is no such shipment.
local blocks, per, reply = ARGV[1] .. ':b:' .. ARGV[2] .. ':', tonumber(ARGV[3]), {}
for at = 4, #ARGV do
  local rank = redis.call('ZRANK', KEYS[1], ARGV[at])
  local start = rank and (rank % per) * 16
  reply[at - 3] = rank and redis.call('GETRANGE', blocks .. math.floor(rank / per), start, start + 15) or ''
end
return reply
