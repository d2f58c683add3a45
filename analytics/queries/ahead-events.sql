-- Accepted events that are ahead of their time, the latest received of each courier, each once. Parameters: since, until (seconds
-- since 1970).
SELECT
    courier,
    message_id AS messageId,
    place AS messageIndex,
    code,
    toUnixTimestamp64Milli(min(occurred_at)) AS occurredAtMs,
    toUnixTimestamp64Milli(min(received_at)) AS receivedAtMs
FROM events FINAL
WHERE received_at >= toDateTime64({since:UInt32}, 3, 'UTC') AND received_at < toDateTime64({until:UInt32}, 3, 'UTC')
    AND occurred_at > received_at
GROUP BY courier, fact_key, message_id, place, code
ORDER BY courier, receivedAtMs DESC, messageId, messageIndex
LIMIT 5 BY courier
