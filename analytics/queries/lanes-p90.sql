-- Days in which nine of ten deliveries to a CAP arrive, by courier; of samples that may be shown alone. Parameters: caps, since
-- (date), sample.
SELECT
    courier,
    dest_cap AS destCap,
    count() AS deliveries,
    arraySort(groupArray(lead_days))[toUInt64(ceil(deliveries * 90 / 100))] AS p90
FROM deliveries FINAL
WHERE delivered_on >= {since:Date32}
    AND dest_cap IN {caps:Array(String)}
    AND NOT is_return
    AND NOT removed
    AND is_evidence
GROUP BY courier, dest_cap
HAVING deliveries >= {sample:UInt32}
