-- Cells of the lanes to one destination CAP: for each courier and grain, how many deliveries took how many days.
-- Parameters: destCap, originCap, originArea, weightBand (empty = not asked), couriers (empty = all), since (date).
SELECT
    courier,
    grain,
    sum(deliveries) AS sample,
    sumIf(deliveries, troubled) AS troubles,
    sumMap([lead_days], [deliveries]) AS leads,
    sumMapIf([assumeNotNull(transit_days)], [deliveries], transit_days IS NOT NULL) AS transits
FROM
(
    SELECT
        courier,
        {originCap:String} != '' AND origin_cap = {originCap:String} AS from_cap,
        {originArea:String} != '' AND origin_area = {originArea:String} AS from_area,
        {weightBand:String} != '' AND weight_band = {weightBand:String} AS weighs,
        attempts > 1 OR exceptions > 0 AS troubled,
        lead_days,
        transit_days,
        count() AS deliveries
    FROM deliveries FINAL
    WHERE dest_cap = {destCap:String}
        AND (empty({couriers:Array(String)}) OR courier IN {couriers:Array(String)})
        AND delivered_on >= {since:Date32}
        AND NOT is_return
        AND NOT removed
        AND is_evidence
    GROUP BY courier, from_cap, from_area, weighs, troubled, lead_days, transit_days
)
ARRAY JOIN arrayFilter(
    (name, applies) -> applies,
    ['origin_cap_dest_weight', 'origin_cap_dest', 'area_cap_weight', 'cap_weight', 'area_cap', 'cap'],
    [from_cap AND weighs, from_cap, from_area AND weighs, weighs, from_area, true]
) AS grain
GROUP BY courier, grain
