-- Couriers by the month of delivery (Europe/Rome). Returns are counted and left out of every other figure.
CREATE OR REPLACE VIEW courier_performance AS
SELECT
    courier,
    toStartOfMonth(delivered_on) AS month,
    countIf(NOT is_return) AS deliveries,
    countIf(is_return) AS returns,
    arraySort(groupArrayIf(lead_days, NOT is_return))[toUInt64(ceil(deliveries * 50 / 100))] AS lead_median,
    round(avgIf(lead_days, NOT is_return), 1) AS lead_mean,
    arraySort(groupArrayIf(lead_days, NOT is_return))[toUInt64(ceil(deliveries * 90 / 100))] AS lead_p90,
    round(avgIf(transit_days, NOT is_return), 1) AS transit_mean,
    round(countIf(attempts = 1 AND NOT is_return) / deliveries, 4) AS first_attempt_share,
    round(countIf(exceptions > 0 AND NOT is_return) / deliveries, 4) AS exception_share,
    uniqExact(dest_cap) AS dest_caps
FROM deliveries FINAL
WHERE NOT removed
GROUP BY courier, month
