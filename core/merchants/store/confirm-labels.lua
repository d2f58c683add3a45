#!lua flags=allow-oom
-- Opens a transmission for labels that are in none yet, with the content of its slip, and releases the confirmation's claim. Runs
-- with full memory too, since the carrier has answered: it adds one transmission with its slip.
--
-- KEYS[1]  string: id of the transmission that this confirmation will open (claim-id.lua)
-- KEYS[2]  hash of the transmission's slip
-- KEYS[3]  hash of the transmission
-- KEYS[4…] hashes of the labels that the carrier has confirmed
-- ARGV[1]  transmission id    ARGV[2]  secret part of the slip's address
-- ARGV[3]  milliseconds that a transmission and its slip are kept
-- ARGV[4]  head of the slip (JSON)
-- ARGV[5…] for each label its id and its row of the slip (JSON)
--
-- Reply: for each label 1 = in this transmission, 0 = it is in another one already, has been voided or has expired.
local id, address, keptMs = ARGV[1], ARGV[2], tonumber(ARGV[3])
local isWhole = #KEYS > 3 and #ARGV == 2 * #KEYS - 2
if not isWhole or not string.find(id, '^%d+$') or address == '' or not keptMs then
  return redis.error_reply('ERR confirm-labels: wrong arguments')
end
local reply, free, ids, rows = {}, {}, {}, {}
for at = 4, #KEYS do
  local fields = redis.call('HMGET', KEYS[at], 'd', 'tx', 'vd')
  local open = fields[1] and not fields[2] and not fields[3]
  reply[#reply + 1] = open and 1 or 0
  if open then
    free[#free + 1], ids[#ids + 1], rows[#rows + 1] = at, ARGV[2 * at - 3], ARGV[2 * at - 2]
  end
end
redis.call('DEL', KEYS[1])
if #free == 0 then return reply end
for _, index in ipairs(free) do redis.call('HSET', KEYS[index], 'tx', id, 'slip', address) end
redis.call('HSET', KEYS[2], 'head', ARGV[4], 'rows', '[' .. table.concat(rows, ',') .. ']')
redis.call('PEXPIRE', KEYS[2], ARGV[3])
redis.call('HSET', KEYS[3], 'head', ARGV[4], 'slip', address, 'labels', '[' .. table.concat(ids, ',') .. ']')
redis.call('PEXPIRE', KEYS[3], ARGV[3])
return reply
