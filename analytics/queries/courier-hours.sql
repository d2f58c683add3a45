-- Events of each courier by hour, whatever became of them. Parameters: since, until (full hours, seconds since 1970).
SELECT
    courier,
    toUnixTimestamp(hour) * 1000 AS at,
    sum(event_outcomes.events) AS events
FROM event_outcomes FINAL
WHERE outcome != 'RULE'
    AND hour >= toDateTime({since:UInt32}, 'UTC')
    AND hour < toDateTime({until:UInt32}, 'UTC')
GROUP BY courier, hour
ORDER BY courier, hour
