-- How well couriers report, by the day (Europe/Rome) on which we received it. Delays are seconds from `occurredAt` to our
-- receiving it; a clock that runs ahead of ours counts as 0. Shares are of the facts, or of the events received.
CREATE OR REPLACE VIEW event_quality AS
SELECT
    courier,
    day,
    sum(part_facts) AS facts,
    max(part_p50) AS delay_p50,
    max(part_p95) AS delay_p95,
    round(sum(part_late) / facts, 4) AS out_of_order_share,
    round(sum(part_unmapped) / facts, 4) AS unmapped_share,
    sum(part_received) AS received,
    sum(part_duplicate) AS duplicate,
    sum(part_invalid) AS invalid,
    sum(part_unknown) AS unknown_tracking,
    round(duplicate / received, 4) AS duplicate_share,
    round(invalid / received, 4) AS invalid_share,
    round(unknown_tracking / received, 4) AS unknown_tracking_share,
    delay_p50 AS delay_p50_seconds,
    delay_p95 AS delay_p95_seconds
FROM
(
    SELECT
        courier,
        toDate(received_at, 'Europe/Rome') AS day,
        count() AS part_facts,
        quantileExact(0.5)(toUInt64(greatest(0, dateDiff('second', occurred_at, received_at)))) AS part_p50,
        quantileExact(0.95)(toUInt64(greatest(0, dateDiff('second', occurred_at, received_at)))) AS part_p95,
        countIf(out_of_order) AS part_late,
        countIf(status = '') AS part_unmapped,
        0 AS part_received,
        0 AS part_duplicate,
        0 AS part_invalid,
        0 AS part_unknown
    FROM events FINAL
    GROUP BY courier, day
    UNION ALL
    SELECT
        courier,
        toDate(hour, 'Europe/Rome') AS day,
        0,
        0,
        0,
        0,
        0,
        sumIf(events, outcome != 'RULE'),
        sumIf(events, outcome = 'DUPLICATE'),
        sumIf(events, outcome = 'INVALID'),
        sumIf(events, outcome = 'UNKNOWN_TRACKING')
    FROM event_outcomes FINAL
    GROUP BY courier, day
)
GROUP BY courier, day
