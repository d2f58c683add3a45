-- What share of deliveries came within so many calendar days of the ship date, by month of delivery (Europe/Rome), origin
-- area and destination area. Prefixes of areas are those of core/benchmarks/rules/cap-prefix.ts.
CREATE OR REPLACE VIEW sla AS
SELECT
    courier,
    toStartOfMonth(delivered_on) AS month,
    toString(deliveries.origin_area) AS origin_area,
    multiIf(
        left(dest_cap, 2) IN ('07', '08', '09'), 'SUD',
        dest_cap < '07', 'CENTRO',
        dest_cap < '50', 'NORD',
        dest_cap < '64', 'CENTRO',
        'SUD') AS dest_area,
    count() AS delivered,
    round(countIf(lead_days <= 1) / delivered, 4) AS within_1_day,
    round(countIf(lead_days <= 2) / delivered, 4) AS within_2_days,
    round(countIf(lead_days <= 3) / delivered, 4) AS within_3_days,
    round(countIf(lead_days <= 5) / delivered, 4) AS within_5_days,
    round(countIf(attempts = 1) / delivered, 4) AS first_attempt_share
FROM deliveries FINAL
WHERE NOT is_return AND NOT removed AND is_evidence
GROUP BY courier, month, origin_area, dest_area
