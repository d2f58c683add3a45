-- One row per webhook attempt. An attempt never changes, so a row that is written again is the same and counts once.
-- No personal data, no URL, no secret and no word of a receiver: the channel is a keyed hash.
CREATE TABLE IF NOT EXISTS attempts
(
    endpoint_id  LowCardinality(String) COMMENT 'v1_ begins the v1 webhook of a channel',
    channel      FixedString(16),
    delivery_id  String,
    event_id     String,
    generation   UInt32 COMMENT '1, and one more with each replay',
    attempt      UInt16 COMMENT 'from 1 in each generation',
    at           DateTime64(3, 'UTC'),
    http_status  UInt16 COMMENT '0: no answer',
    error        LowCardinality(String) COMMENT 'timeout, connection, tls, dns, address, acknowledgement, other; empty: the status tells',
    latency_ms   UInt32,
    outcome      LowCardinality(String) COMMENT 'DELIVERED, WAITING (another attempt follows), FAILED',
    CONSTRAINT complete CHECK endpoint_id != '' AND delivery_id != '' AND attempt > 0 AND outcome != ''
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(at)
ORDER BY (endpoint_id, at, delivery_id, generation, attempt)
SETTINGS min_age_to_force_merge_seconds = 3600, min_age_to_force_merge_on_partition_only = 1
