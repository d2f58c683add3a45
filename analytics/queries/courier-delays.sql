-- How long after it happened couriers reported what we received, by day (Europe/Rome). Parameters: since (seconds since 1970).
SELECT
    courier,
    toString(toDate(received_at, 'Europe/Rome')) AS day,
    count() AS events,
    quantileExact(0.5)(toUInt64(greatest(0, dateDiff('second', occurred_at, received_at)))) AS p50,
    quantileExact(0.95)(toUInt64(greatest(0, dateDiff('second', occurred_at, received_at)))) AS p95
FROM events FINAL
WHERE received_at >= toDateTime({since:UInt32}, 'UTC')
GROUP BY courier, day
ORDER BY courier, day
