-- What became of couriers' events, by hour, also of those that are no facts. Counts only grow within their hour, so the
-- largest one counts and writing it again changes nothing.
CREATE TABLE IF NOT EXISTS event_outcomes
(
    hour     DateTime('UTC') COMMENT 'when the message was received',
    courier  LowCardinality(String),
    outcome  LowCardinality(String) COMMENT 'ACCEPTED, DUPLICATE, UNKNOWN_TRACKING, INVALID; RULE: a rule that invalid events broke',
    rule     LowCardinality(String) COMMENT 'fault code and member; empty unless the outcome is RULE',
    events   UInt64
)
ENGINE = ReplacingMergeTree(events)
PARTITION BY toYYYYMM(hour)
ORDER BY (courier, hour, outcome, rule)
