-- Cells of the benchmarks, every grain of document 1, over the last 12 months. `origin` is a CAP or an area, as the grain
-- says; empty where the grain has none. Cells that are suppressed for merchants are shown here, and marked.
CREATE OR REPLACE VIEW lanes AS
SELECT
    courier,
    dest_cap,
    cell.1 AS grain,
    cell.2 AS origin,
    cell.3 AS weight_band,
    count() AS deliveries,
    deliveries < 20 AS suppressed,
    arraySort(groupArray(lead_days))[toUInt64(ceil(deliveries * 50 / 100))] AS lead_median,
    round(avg(lead_days), 1) AS lead_mean,
    arraySort(groupArray(lead_days))[toUInt64(ceil(deliveries * 90 / 100))] AS lead_p90,
    count(transit_days) AS transit_deliveries,
    if(transit_deliveries = 0, NULL, arraySort(groupArray(transit_days))[toUInt64(ceil(transit_deliveries * 50 / 100))]) AS transit_median,
    round(avg(transit_days), 1) AS transit_mean,
    round(avg(attempts), 2) AS attempts_mean,
    round(countIf(attempts > 1 OR exceptions > 0) / deliveries, 4) AS trouble_share,
    uniqExact(company) AS companies,
    round(arrayMax(sumMap([company], [toUInt64(1)]).2) / deliveries, 4) AS top_company_share,
    top_company_share > 0.6 AS dominated
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
