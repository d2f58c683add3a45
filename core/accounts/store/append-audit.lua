#!lua
-- Appends an entry to the audit log, on its way to ClickHouse, and counts it for its tenant.
--
-- KEYS[1]  log (stream)    KEYS[2]  by tenant, how many entries were `logged <tenant>` and `taken <tenant>` over (hash)
-- KEYS[3]  counts of the log (hash): `logged`, and by group what is done
-- ARGV[1]  tenant    ARGV[2…]  fields of the entry and their values
--
-- The entry's `n` is its number among its tenant's.
--
-- Reply: id of the entry.
assert(ARGV[1] ~= '' and #ARGV >= 3 and #ARGV % 2 == 1, 'a tenant, and fields with values')
local n = redis.call('HINCRBY', KEYS[2], 'logged ' .. ARGV[1], 1)
redis.call('HINCRBY', KEYS[3], 'logged', 1)
return redis.call('XADD', KEYS[1], '*', 'tenant', ARGV[1], 'n', n, unpack(ARGV, 2))
