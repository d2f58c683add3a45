#!lua
-- decide.lua, where the configuration is the one that its caller has decided by.
--
-- KEYS  those of decide.lua, then the system hash (`version` of the configuration)
-- ARGV  those of decide.lua, then the version that the caller knows
--
-- Reply: that of decide.lua; {'stale'} under another configuration: nothing was done then.
local version, known = redis.call('HGET', KEYS[#KEYS], 'version') or '0', ARGV[#ARGV]
if version ~= known then return { 'stale' } end
KEYS[#KEYS], ARGV[#ARGV] = nil, nil
-- part: decide
