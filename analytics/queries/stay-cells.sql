-- How long deliveries of a courier stayed in each status, and when they arrived after they had entered it: for each cell of the
-- benchmarks with 20 deliveries, [working days in the status, working days until the delivery, deliveries]. An empty status is the time
-- before the first mapped event, since the ship date. Of a status that a shipment was in more than once, the first time counts. A day that
-- is no working day counts as the next one. Parameters: courier, since and until (dates of delivery, until excluded), holidays (dates).
WITH
    (first_day, last_day) -> toUInt16(least(60, arrayCount(
        day -> toDayOfWeek(day) < 6 AND NOT has({holidays:Array(Date32)}, day),
        arrayMap(at -> first_day + toIntervalDay(at), range(toUInt32(greatest(0, dateDiff('day', first_day, last_day)))))))) AS work_days
SELECT
    dest_cap AS destCap,
    grain,
    origin,
    band,
    stage,
    groupArray((stayed, total, deliveries)) AS stays
FROM
(
    SELECT dest_cap, cell.1 AS grain, cell.2 AS origin, cell.3 AS band, stage, stayed, total, count() AS deliveries
    FROM
    (
        SELECT
            dest_cap,
            toString(origin_cap) AS from_cap,
            toString(origin_area) AS from_area,
            toString(weight_band) AS weighs,
            delivered_on,
            arrayJoin(arrayFilter(
                (stay, at) -> stay.2 <= delivered_on AND arrayFirstIndex(one -> one.1 = stay.1, all_stays) = at,
                arrayMap(
                    (one, at) -> (one.1, one.2, least(delivered_on, greatest(one.2, all_steps[at + 1].2))),
                    arraySlice(all_steps, 1, length(all_steps) - 1),
                    arrayEnumerate(arraySlice(all_steps, 1, length(all_steps) - 1))) AS all_stays,
                arrayEnumerate(all_stays))) AS stay,
            stay.1 AS stage,
            work_days(stay.2, stay.3) AS stayed,
            work_days(stay.2, delivered_on) AS total
        FROM
        (
            SELECT
                *,
                arrayConcat([('', ship_date)], steps, [('DELIVERED', delivered_on)]) AS known_steps,
                arrayFilter(
                    (one, at) -> at = 1 OR one.1 != known_steps[at - 1].1,
                    known_steps,
                    arrayEnumerate(known_steps)) AS all_steps
            FROM
            (
                SELECT shipment_id, dest_cap, origin_cap, origin_area, weight_band, ship_date, delivered_on
                FROM deliveries FINAL
                WHERE courier = {courier:String}
                    AND delivered_on >= {since:Date32}
                    AND delivered_on < {until:Date32}
                    AND NOT is_return
                    AND NOT removed
                    AND is_evidence
            ) AS delivered
            LEFT JOIN
            (
                SELECT
                    shipment_id,
                    arrayMap(
                        fact -> (fact.6, fact.7),
                        arraySort(groupArray((
                            least(occurred_at, received_at), occurred_at, terminal, received_at, place, toString(status),
                            toDate32(least(occurred_at, received_at), 'Europe/Rome'))))) AS steps
                FROM events FINAL
                WHERE courier = {courier:String}
                    AND ship_date >= addYears({since:Date32}, -1)
                    AND ship_date < {until:Date32}
                    AND status NOT IN ('', 'DELIVERED')
                GROUP BY shipment_id
            ) AS news USING (shipment_id)
        )
    )
    ARRAY JOIN arrayFilter(
        one -> one.4,
        [
            ('origin_cap_dest_weight', from_cap, weighs, from_cap != '' AND weighs != ''),
            ('origin_cap_dest', from_cap, '', from_cap != ''),
            ('area_cap_weight', from_area, weighs, from_area != '' AND weighs != ''),
            ('cap_weight', '', weighs, weighs != ''),
            ('area_cap', from_area, '', from_area != ''),
            ('cap', '', '', true)
        ]) AS cell
    GROUP BY dest_cap, grain, origin, band, stage, stayed, total
)
GROUP BY dest_cap, grain, origin, band, stage
HAVING sum(deliveries) >= 20
ORDER BY dest_cap
