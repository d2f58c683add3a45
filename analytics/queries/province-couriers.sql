-- How many deliveries each courier made to each destination, by the first two digits of the CAP. Parameters: since (date).
SELECT
    left(dest_cap, 2) AS prefix,
    courier,
    count() AS deliveries
FROM deliveries FINAL
WHERE delivered_on >= {since:Date32}
    AND NOT is_return
    AND NOT removed
    AND is_evidence
GROUP BY prefix, courier
ORDER BY prefix, courier
