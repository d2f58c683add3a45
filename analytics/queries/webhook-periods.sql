-- Webhook attempts by period: how many succeeded, and how long they took. Parameters: endpoints (empty = all), since (seconds
-- since 1970), step (seconds).
SELECT
    intDiv(toUnixTimestamp(at), {step:UInt32}) * {step:UInt32} * 1000 AS begin,
    count() AS attempts,
    countIf(outcome = 'DELIVERED') AS succeeded,
    quantileExact(0.5)(latency_ms) AS p50,
    quantileExact(0.95)(latency_ms) AS p95
FROM attempts FINAL
WHERE at >= toDateTime({since:UInt32}, 'UTC')
    AND (empty({endpoints:Array(String)}) OR endpoint_id IN {endpoints:Array(String)})
GROUP BY begin
ORDER BY begin
