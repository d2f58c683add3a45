-- Rules that invalid events broke, the most broken ones of each courier. Parameters: since, until (seconds since 1970).
SELECT
    courier,
    rule,
    sum(event_outcomes.events) AS events
FROM event_outcomes FINAL
WHERE outcome = 'RULE' AND hour >= toDateTime({since:UInt32}, 'UTC') AND hour < toDateTime({until:UInt32}, 'UTC')
GROUP BY courier, rule
ORDER BY courier, events DESC, rule
LIMIT 20 BY courier
