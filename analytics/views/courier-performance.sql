-- Couriers by the month of delivery (Europe/Rome). Returns, and deliveries that are no evidence, are counted and left out of
-- every other figure, which is NULL in a month without any other delivery.
CREATE OR REPLACE VIEW courier_performance AS
SELECT
    courier,
    toStartOfMonth(delivered_on) AS month,
    countIf(counts) AS deliveries,
    countIf(is_return) AS returns,
    countIf(NOT is_return AND NOT counts) AS left_out,
    if(deliveries = 0, NULL, arraySort(groupArrayIf(lead_days, counts))[toUInt64(ceil(deliveries * 50 / 100))]) AS lead_median,
    if(deliveries = 0, NULL, round(avgIf(lead_days, counts), 1)) AS lead_mean,
    if(deliveries = 0, NULL, arraySort(groupArrayIf(lead_days, counts))[toUInt64(ceil(deliveries * 90 / 100))]) AS lead_p90,
    round(avgIf(transit_days, counts), 1) AS transit_mean,
    round(countIf(attempts = 1 AND counts) / nullIf(deliveries, 0), 4) AS first_attempt_share,
    round(countIf(exceptions > 0 AND counts) / nullIf(deliveries, 0), 4) AS exception_share,
    uniqExactIf(dest_cap, counts) AS dest_caps,
    lead_median AS lead_median_days,
    lead_mean AS lead_mean_days,
    lead_p90 AS lead_p90_days,
    transit_mean AS transit_mean_days
FROM
(
    SELECT *, NOT is_return AND is_evidence AS counts
    FROM deliveries FINAL
    WHERE NOT removed
)
GROUP BY courier, month
