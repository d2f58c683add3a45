-- Couriers by weight band: how many deliveries took how many days. Counted by days first, so that memory does not grow with the
-- rows. Parameters: destCap (empty = all of Italy), since (date).
SELECT
    courier,
    weight_band AS weightBand,
    sumMap([lead_days], [deliveries]) AS leads
FROM
(
    SELECT
        courier,
        weight_band,
        lead_days,
        count() AS deliveries
    FROM deliveries FINAL
    WHERE delivered_on >= {since:Date32}
        AND ({destCap:String} = '' OR dest_cap = {destCap:String})
        AND weight_band != ''
        AND NOT is_return
        AND NOT removed
        AND is_evidence
    GROUP BY courier, weight_band, lead_days
)
GROUP BY courier, weightBand
ORDER BY courier, weightBand
