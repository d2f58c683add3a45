-- Part of create.lua, restore.lua and correct.lua: files a shipment under one of its exact values. Once a value has many shipments, they stand
-- in a bitmap by rank too. `padded` is the form of an index member.
local function addExact(channel, set, bits, name, rank)
  redis.call('SADD', set, name)
  local held = redis.call('SCARD', set)
  if held > many then
    redis.call('SETBIT', bits, rank, 1)
  elseif held == many then
    for _, other in ipairs(redis.call('SMEMBERS', set)) do
      local place = redis.call(channel.gone and 'ZSCORE' or 'ZRANK', channel.ids, string.format(padded, other))
      redis.call('SETBIT', bits, place, 1)
    end
  end
end
