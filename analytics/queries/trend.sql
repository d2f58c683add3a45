-- Couriers by month of delivery: how many deliveries took how many days. Counted by days first, so that memory does not
-- grow with the rows. Parameters: destCap (empty = all of Italy), since (date).
SELECT
    courier,
    toString(month_start) AS month,
    sumMap([lead_days], [deliveries]) AS leads
FROM
(
    SELECT
        courier,
        toStartOfMonth(delivered_on) AS month_start,
        lead_days,
        count() AS deliveries
    FROM deliveries FINAL
    WHERE delivered_on >= {since:Date32}
        AND ({destCap:String} = '' OR dest_cap = {destCap:String})
        AND NOT is_return
        AND NOT removed
        AND is_evidence
    GROUP BY courier, month_start, lead_days
)
GROUP BY courier, month
ORDER BY courier, month
