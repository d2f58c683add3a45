-- How webhook endpoints answer, by the hour (UTC) of the attempt. Latency runs from the look-up of the name to the last byte
-- that is read, unanswered attempts included.
CREATE OR REPLACE VIEW endpoint_health AS
SELECT
    endpoint_id,
    any(attempts.channel) AS channel,
    toStartOfHour(at) AS hour,
    count() AS attempts,
    countIf(outcome = 'DELIVERED') AS delivered,
    countIf(outcome = 'WAITING') AS waiting,
    countIf(outcome = 'FAILED') AS failed,
    round(delivered / attempts, 4) AS success_share,
    round(countIf(attempt = 1 AND outcome = 'DELIVERED') / greatest(countIf(attempt = 1), 1), 4) AS first_attempt_share,
    countIf(http_status BETWEEN 300 AND 399) AS status_3xx,
    countIf(http_status BETWEEN 400 AND 499) AS status_4xx,
    countIf(http_status >= 500) AS status_5xx,
    countIf(error = 'timeout') AS timeouts,
    countIf(error IN ('connection', 'tls', 'dns')) AS unreachable,
    arraySort(groupArray(latency_ms))[toUInt64(ceil(attempts * 50 / 100))] AS latency_p50_ms,
    arraySort(groupArray(latency_ms))[toUInt64(ceil(attempts * 95 / 100))] AS latency_p95_ms
FROM attempts FINAL
GROUP BY endpoint_id, hour
