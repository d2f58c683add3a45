-- How many deliveries had a promise, and kept it (analytics/views/on-time.sql says what the promises are).
-- Parameters: from and to (days of delivery), courier (empty = all).
SELECT
    count(first_estimate_on) AS first_estimate,
    countIf(delivered_on <= first_estimate_on) AS first_estimate_kept,
    count(last_estimate_on) AS last_estimate,
    countIf(delivered_on <= last_estimate_on) AS last_estimate_kept,
    count(planned_on) AS planned,
    countIf(delivered_on <= planned_on) AS planned_kept
FROM
(
    SELECT courier, shipment_id, delivered_on, planned_on
    FROM deliveries FINAL
    WHERE delivered_on BETWEEN {from:Date32} AND {to:Date32}
        AND ({courier:String} = '' OR courier = {courier:String})
        AND NOT is_return
        AND NOT removed
        AND is_evidence
) AS delivery
LEFT JOIN
(
    SELECT
        courier,
        shipment_id,
        argMin(estimated_on, (occurred_at, received_at, place)) AS first_estimate_on,
        argMax(estimated_on, (occurred_at, received_at, place)) AS last_estimate_on
    FROM events FINAL
    WHERE estimated_on IS NOT NULL
        AND status != 'DELIVERED'
        AND ({courier:String} = '' OR courier = {courier:String})
        AND ship_date BETWEEN addYears({from:Date32}, -1) AND {to:Date32}
    GROUP BY courier, shipment_id
) AS estimate USING (courier, shipment_id)
