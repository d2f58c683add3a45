-- Takes an entry that was driven again off its list, once.
--
-- KEYS[1]  list of the group
-- KEYS[2]  dead letters of the log (stream)
-- ARGV[1]  the list's text of the entry
-- ARGV[2]  key of the log    ARGV[3]  group
-- ARGV[4]  why it failed again, '' when it is done
--
-- Reply: 1 = taken off, 0 = another process has taken it off before.
if redis.call('LREM', KEYS[1], 1, ARGV[1]) == 0 then return 0 end
if ARGV[4] ~= '' then
  local kept = cjson.decode(ARGV[1])
  redis.call('XADD', KEYS[2], '*', 'log', ARGV[2], 'group', ARGV[3], 'id', kept.id,
    'reason', ARGV[4], 'entry', kept.entry)
end
return 1
