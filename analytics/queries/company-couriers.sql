-- One company's own deliveries by courier. Parameters: company (keyed hash), since (date).
SELECT
    courier,
    sumMap([lead_days], [toUInt64(1)]) AS leads,
    countIf(attempts > 1 OR exceptions > 0) AS troubles
FROM deliveries FINAL
WHERE delivered_on >= {since:Date32}
    AND company = {company:String}
    AND NOT is_return
    AND NOT removed
    AND is_evidence
GROUP BY courier
ORDER BY courier
