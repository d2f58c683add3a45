-- What share of deliveries came on time, by month of delivery (Europe/Rome), origin area and destination area, by three promises: the
-- courier's first estimate, its last one and the merchant's planned date. Each share stands on the deliveries that had the promise. Prefixes
-- of areas are those of core/benchmarks/rules/cap-prefix.ts.
CREATE OR REPLACE VIEW on_time AS
SELECT
    courier,
    toStartOfMonth(delivered_on) AS month,
    toString(delivery.origin_area) AS origin_area,
    multiIf(
        left(dest_cap, 2) IN ('07', '08', '09'), 'SUD',
        dest_cap < '07', 'CENTRO',
        dest_cap < '50', 'NORD',
        dest_cap < '64', 'CENTRO',
        'SUD') AS dest_area,
    count() AS delivered,
    count(first_estimate_on) AS first_estimate_deliveries,
    round(countIf(delivered_on <= first_estimate_on) / nullIf(first_estimate_deliveries, 0), 4) AS first_estimate_share,
    count(last_estimate_on) AS last_estimate_deliveries,
    round(countIf(delivered_on <= last_estimate_on) / nullIf(last_estimate_deliveries, 0), 4) AS last_estimate_share,
    count(planned_on) AS planned_deliveries,
    round(countIf(delivered_on <= planned_on) / nullIf(planned_deliveries, 0), 4) AS planned_share
FROM
(
    SELECT courier, shipment_id, delivered_on, deliveries.origin_area AS origin_area, dest_cap, planned_on
    FROM deliveries FINAL
    WHERE NOT is_return AND NOT removed AND is_evidence
) AS delivery
LEFT JOIN
(
    SELECT
        courier,
        shipment_id,
        argMin(estimated_on, (occurred_at, received_at, place)) AS first_estimate_on,
        argMax(estimated_on, (occurred_at, received_at, place)) AS last_estimate_on
    FROM events FINAL
    WHERE estimated_on IS NOT NULL AND status != 'DELIVERED'
    GROUP BY courier, shipment_id
) AS estimate USING (courier, shipment_id)
GROUP BY courier, month, origin_area, dest_area
