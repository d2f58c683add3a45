-- Cells of the benchmarks, every grain of document 1, over the last 12 months. `origin` is a CAP or an area, as the grain
-- says; empty where the grain has none. Cells that are suppressed for merchants are shown here, and marked. The interval of the
-- median is that of core/benchmarks/rules/day-counts.ts: the rank by the normal limit, and one more for the sizes up to 1,000 of which
-- the exact binomial distribution says so.
CREATE OR REPLACE VIEW lanes AS
WITH
    [17, 44, 67, 94, 138, 190, 267, 301, 396, 438, 551, 651, 846] AS one_more,
    (n -> toInt64(floor((n + 1 - 1.959964 * sqrt(n)) / 2)) + has(one_more, n)) AS interval_rank
SELECT
    courier,
    dest_cap,
    grain,
    origin,
    weight_band,
    deliveries,
    deliveries < 20 AS suppressed,
    leads[toUInt64(ceil(deliveries * 50 / 100))] AS lead_median,
    lead_mean,
    leads[toUInt64(ceil(deliveries * 90 / 100))] AS lead_p90,
    transit_deliveries,
    if(transit_deliveries = 0, NULL, transits[toUInt64(ceil(transit_deliveries * 50 / 100))]) AS transit_median,
    transit_mean,
    attempts_mean,
    trouble_share,
    companies,
    top_company_share,
    top_company_share > 0.6 AS dominated,
    lead_median AS lead_median_days,
    if(deliveries < 6, NULL, leads[interval_rank(deliveries)]) AS lead_median_low_days,
    if(deliveries < 6, NULL, leads[deliveries + 1 - interval_rank(deliveries)]) AS lead_median_high_days,
    lead_mean AS lead_mean_days,
    lead_p90 AS lead_p90_days,
    transit_median AS transit_median_days,
    if(transit_deliveries < 6, NULL, transits[interval_rank(transit_deliveries)]) AS transit_median_low_days,
    if(transit_deliveries < 6, NULL, transits[transit_deliveries + 1 - interval_rank(transit_deliveries)]) AS transit_median_high_days,
    transit_mean AS transit_mean_days
FROM
(
    SELECT
        courier,
        dest_cap,
        cell.1 AS grain,
        cell.2 AS origin,
        cell.3 AS weight_band,
        count() AS deliveries,
        arraySort(groupArray(lead_days)) AS leads,
        round(avg(lead_days), 1) AS lead_mean,
        count(transit_days) AS transit_deliveries,
        arraySort(groupArray(transit_days)) AS transits,
        round(avg(transit_days), 1) AS transit_mean,
        round(avg(attempts), 2) AS attempts_mean,
        round(countIf(attempts > 1 OR exceptions > 0) / deliveries, 4) AS trouble_share,
        uniqExact(company) AS companies,
        round(arrayMax(sumMap([company], [toUInt64(1)]).2) / deliveries, 4) AS top_company_share
    FROM
    (
        SELECT
            *,
            arrayJoin(arrayFilter(
                one -> one.4,
                [
                    ('origin_cap_dest_weight', origin_cap, row_band, origin_cap != '' AND row_band != ''),
                    ('origin_cap_dest', origin_cap, '', origin_cap != ''),
                    ('area_cap_weight', origin_area, row_band, origin_area != '' AND row_band != ''),
                    ('cap_weight', '', row_band, row_band != ''),
                    ('area_cap', origin_area, '', origin_area != ''),
                    ('cap', '', '', true)
                ]
            )) AS cell
        FROM
        (
            SELECT
                courier,
                dest_cap,
                toString(origin_cap) AS origin_cap,
                toString(origin_area) AS origin_area,
                toString(deliveries.weight_band) AS row_band,
                lead_days,
                transit_days,
                attempts,
                exceptions,
                company
            FROM deliveries FINAL
            WHERE delivered_on >= addYears(toDate32(toTimeZone(now(), 'Europe/Rome')), -1) AND NOT is_return AND NOT removed AND is_evidence
        )
    )
    GROUP BY courier, dest_cap, grain, origin, weight_band
)
