-- Destinations by the first two digits of their CAP: how many deliveries took how many days. Counted by days first, so that
-- memory does not grow with the rows. Parameters: courier (empty = all), since (date).
SELECT
    prefix,
    sumIf(deliveries, troubled) AS troubles,
    sumMap([lead_days], [deliveries]) AS leads
FROM
(
    SELECT
        left(dest_cap, 2) AS prefix,
        attempts > 1 OR exceptions > 0 AS troubled,
        lead_days,
        count() AS deliveries
    FROM deliveries FINAL
    WHERE delivered_on >= {since:Date32}
        AND ({courier:String} = '' OR courier = {courier:String})
        AND NOT is_return
        AND NOT removed
        AND is_evidence
    GROUP BY prefix, troubled, lead_days
)
GROUP BY prefix
ORDER BY prefix
