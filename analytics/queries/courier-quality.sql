-- How well couriers report, by when we received it. Parameters: since, until (seconds since 1970).
-- Delays are seconds; a courier's clock that runs ahead of ours counts as 0.
SELECT
    courier,
    sum(facts_part) AS facts,
    max(p50_part) AS delayP50,
    max(p95_part) AS delayP95,
    sum(late_part) AS outOfOrder,
    sum(unmapped_part) AS unmapped,
    sum(ahead_part) AS ahead,
    sum(future_part) AS inFuture,
    sum(received_part) AS received,
    sum(duplicate_part) AS duplicate,
    sum(invalid_part) AS invalid,
    sum(unknown_part) AS unknownTracking
FROM
(
    SELECT
        courier,
        count() AS facts_part,
        quantileExactLow(0.5)(toUInt32(greatest(0, dateDiff('second', occurred_at, received_at)))) AS p50_part,
        quantileExactLow(0.95)(toUInt32(greatest(0, dateDiff('second', occurred_at, received_at)))) AS p95_part,
        countIf(out_of_order) AS late_part,
        countIf(status = '') AS unmapped_part,
        countIf(occurred_at > received_at) AS ahead_part,
        0 AS future_part,
        0 AS received_part,
        0 AS duplicate_part,
        0 AS invalid_part,
        0 AS unknown_part
    FROM events FINAL
    WHERE received_at >= toDateTime64({since:UInt32}, 3, 'UTC') AND received_at < toDateTime64({until:UInt32}, 3, 'UTC')
    GROUP BY courier
    UNION ALL
    SELECT
        courier,
        0,
        0,
        0,
        0,
        0,
        0,
        sumIf(event_outcomes.events, outcome = 'RULE' AND rule = 'IN_FUTURE occurredAt'),
        sumIf(event_outcomes.events, outcome != 'RULE'),
        sumIf(event_outcomes.events, outcome = 'DUPLICATE'),
        sumIf(event_outcomes.events, outcome = 'INVALID'),
        sumIf(event_outcomes.events, outcome = 'UNKNOWN_TRACKING')
    FROM event_outcomes FINAL
    WHERE hour >= toDateTime({since:UInt32}, 'UTC') AND hour < toDateTime({until:UInt32}, 'UTC')
    GROUP BY courier
)
GROUP BY courier
ORDER BY courier
