-- Entries of the audit log older than a place, the newest first.
SELECT
    toUnixTimestamp64Milli(written) AS ms,
    sequence,
    tenant,
    toUnixTimestamp64Milli(at) AS atMs,
    actor,
    action,
    target,
    before,
    after
FROM audit_log
WHERE (written, sequence) < (fromUnixTimestamp64Milli({ms:Int64}, 'UTC'), {sequence:UInt64})
  AND (written, sequence) >= (fromUnixTimestamp64Milli({fromMs:Int64}, 'UTC'), {fromSequence:UInt64})
  AND position(audit_log.tenant, {tenant:String}) > 0
  AND position(audit_log.actor, {actor:String}) > 0
  AND position(audit_log.target, {target:String}) > 0
  AND toUnixTimestamp64Milli(at) BETWEEN {atFrom:Int64} AND {atTo:Int64}
ORDER BY written DESC, sequence DESC
LIMIT 1 BY written, sequence
LIMIT {limit:UInt32}
