-- Events seen in the last full hours against what the same hours of the week brought before, in Europe/Rome.
-- Parameters: until (a full hour, seconds since 1970), hours (how many are judged), weeks (how many are looked back at).
-- `weeks` of a courier are those it has been heard of for; none = nothing is expected yet. An hour without events is one
-- of no events, so it is the clock that says how many hours there were to compare with, also where it is changed.
WITH
    toDateTime({until:UInt32}, 'UTC') AS until,
    until - toIntervalHour({hours:UInt8}) AS seen_from,
    arrayMap(
        back -> (toDayOfWeek(until - toIntervalHour(back), 0, 'Europe/Rome'), toHour(until - toIntervalHour(back), 'Europe/Rome')),
        range(1, {hours:UInt8} + 1)) AS judged
SELECT
    courier,
    sumIf(total, hour >= seen_from) AS seen,
    any(weeks_known) AS weeks,
    arrayCount(
        back -> has(judged, (toDayOfWeek(seen_from - toIntervalHour(back), 0, 'Europe/Rome'), toHour(seen_from - toIntervalHour(back), 'Europe/Rome'))),
        range(1, toUInt32(weeks * 168 + 1))) AS compared_hours,
    if(compared_hours = 0, 0, sumIf(total, is_compared) * {hours:UInt8} / compared_hours) AS expected,
    toUnixTimestamp(max(hour)) AS lastHour
FROM
(
    SELECT
        courier,
        hour,
        sum(event_outcomes.events) AS total,
        least({weeks:UInt8}, greatest(0, intDiv(dateDiff('hour', min(hour) OVER (PARTITION BY courier), seen_from), 168))) AS weeks_known,
        hour < seen_from
            AND hour >= seen_from - toIntervalWeek(weeks_known)
            AND has(judged, (toDayOfWeek(hour, 0, 'Europe/Rome'), toHour(hour, 'Europe/Rome'))) AS is_compared
    FROM event_outcomes FINAL
    WHERE outcome != 'RULE'
        AND hour >= seen_from - toIntervalWeek({weeks:UInt8})
        AND hour < until
    GROUP BY courier, hour
)
GROUP BY courier
ORDER BY courier
