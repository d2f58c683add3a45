-- Sets events of unknown parcels aside, unless their reference has been registered in between.
--
-- KEYS[2i-1]  reference (string)
-- KEYS[2i]    parked events of the reference (hash: fact key -> minimal event)
-- ARGV[1]     milliseconds the parked events live
-- ARGV[2]     events one reference may hold
-- ARGV[2i+1]  fact key
-- ARGV[2i+2]  parked event, JSON
--
-- Reply: for each event 1 = parked (or parked before), 0 = the reference is known now, 2 = the reference holds its limit.
local reply = {}
for at = 1, #KEYS / 2 do
  local parked, field = KEYS[2 * at], ARGV[2 * at + 1]
  if redis.call('EXISTS', KEYS[2 * at - 1]) == 1 then
    reply[at] = 0
  elseif redis.call('HEXISTS', parked, field) == 1 then
    reply[at] = 1
  elseif redis.call('HLEN', parked) >= tonumber(ARGV[2]) then
    reply[at] = 2
  else
    redis.call('HSET', parked, field, ARGV[2 * at + 2])
    redis.call('PEXPIRE', parked, ARGV[1])
    reply[at] = 1
  end
end
return reply
