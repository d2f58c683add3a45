-- Deliveries to one destination CAP by courier and grain: how many took how many working days from the ship date. A day that is no
-- working day counts as the next one. Parameters: destCap, originCap, originArea, weightBand (empty = not asked), couriers, since (date),
-- holidays (dates).
SELECT
    courier,
    grain,
    sumMap([work_days], [deliveries]) AS days
FROM
(
    SELECT
        courier,
        from_cap,
        from_area,
        weighs,
        arrayCount(
            day -> toDayOfWeek(day) < 6 AND NOT has({holidays:Array(Date32)}, day),
            arrayMap(at -> ship_date + toIntervalDay(at), range(toUInt32(dateDiff('day', ship_date, delivered_on))))) AS work_days,
        sum(rows) AS deliveries
    FROM
    (
        SELECT
            courier,
            {originCap:String} != '' AND origin_cap = {originCap:String} AS from_cap,
            {originArea:String} != '' AND origin_area = {originArea:String} AS from_area,
            {weightBand:String} != '' AND weight_band = {weightBand:String} AS weighs,
            ship_date,
            delivered_on,
            count() AS rows
        FROM deliveries FINAL
        WHERE dest_cap = {destCap:String}
            AND courier IN {couriers:Array(String)}
            AND delivered_on >= {since:Date32}
            AND NOT is_return
            AND NOT removed
            AND is_evidence
        GROUP BY courier, from_cap, from_area, weighs, ship_date, delivered_on
    )
    GROUP BY courier, from_cap, from_area, weighs, work_days
)
ARRAY JOIN arrayFilter(
    (name, applies) -> applies,
    ['origin_cap_dest_weight', 'origin_cap_dest', 'area_cap_weight', 'cap_weight', 'area_cap', 'cap'],
    [from_cap AND weighs, from_cap, from_area AND weighs, weighs, from_area, true]
) AS grain
GROUP BY courier, grain
