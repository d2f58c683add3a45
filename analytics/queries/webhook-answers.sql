-- Attempts that did not succeed, by what was answered. Parameters: endpoints (empty = all), since (seconds since 1970).
SELECT
    http_status AS status,
    error,
    count() AS attempts,
    uniqExact(endpoint_id) AS endpoints
FROM attempts FINAL
WHERE at >= toDateTime({since:UInt32}, 'UTC')
    AND outcome != 'DELIVERED'
    AND (empty({endpoints:Array(String)}) OR endpoint_id IN {endpoints:Array(String)})
GROUP BY status, error
ORDER BY attempts DESC
LIMIT 12
