#!lua
-- Takes in a message of one event on one server, in one step: the configuration is the one that the caller knows, the courier has a
-- request left, the event's tracking number finds a single shipment, and the event is claimed and appended for it (`claim.lua`).
--
-- KEYS[1…6]  those of claim.lua, then the event's bucket in each generation that is checked, the current one first
-- then the system hash (`version` of the configuration), the courier's bucket of requests, the reference's candidates (string) and,
--   where its text was given in another form, those under that form
-- ARGV[1]  version of the configuration that the caller knows
-- ARGV[2…5] those of courier-rate.lua
-- ARGV[6…10] high-water mark, seconds, courier, hour and generations, as for claim.lua
-- ARGV[11] id of the event as a 64-bit integer
-- ARGV[12] its line in the event log behind the id of its shipment
--
-- A candidate's line begins with `[<id>,`. Whatever else a reference may hold is for the caller to judge.
--
-- Reply: {digit, whole requests left, milliseconds until the next}, the digit and an empty text as claim.lua has them, 'refused' where
-- no request was left; or {'stale'} for another configuration, {'unclear'} where not one shipment is found: nothing was done then.
local call, own = redis.call, 6 + ARGV[10]
local system, bucket, reference, asGiven = unpack(KEYS, own + 1, own + 4)
assert(reference and #KEYS <= own + 4 and #ARGV == 12, 'keys or arguments of another number')
-- Before the first write: what claim.lua would refuse after a request was taken.
assert(ARGV[6] + 0 >= 0 and ARGV[7] + 0 > 0 and ARGV[10] + 0 >= 1, 'a mark, seconds or generations')
assert(string.find(ARGV[11], '^-?%d+$') and #ARGV[11] <= 20 and string.sub(ARGV[12], -1) == '\n', 'an event')
local takeRequest = function(KEYS, ARGV)
-- part: courier-rate
end
local claim = function(KEYS, ARGV)
-- part: claim
end

if (call('HGET', system, 'version') or '0') ~= ARGV[1] then return { 'stale' } end
local candidates = call('GET', reference)
local id = candidates and not string.find(candidates, '\n', 1, true) and string.match(candidates, '^%[(%d+),')
if not id or asGiven and call('EXISTS', asGiven) == 1 then return { 'unclear' } end
local taken, left, nextMs = unpack(takeRequest({ bucket }, { unpack(ARGV, 2, 5) }))
if taken == 0 then return { 'refused', left, nextMs } end
local line = '[' .. id .. ARGV[12]
local about = { unpack(ARGV, 6, 10) }
about[6], about[7] = ARGV[11] .. ' ' .. #line .. ' 1\n', line
return { claim({ unpack(KEYS, 1, own) }, about), left, nextMs }
