-- One row per fact applied to a shipment: the highest version counts (a fact is written again when its code is mapped
-- anew, or when it comes in full after having been set aside).
-- No personal data and no free text: company and channel are keyed hashes.
-- A shipment keeps its ship date, so the rows of a fact meet in one partition.
CREATE TABLE IF NOT EXISTS events
(
    shipment_id    UInt64,
    fact_key       String COMMENT 'identity within the shipment',
    company        FixedString(16),
    channel        FixedString(16),
    courier        LowCardinality(String),
    code           LowCardinality(String) COMMENT 'the courier''s own',
    reason_code    LowCardinality(String) COMMENT 'the courier''s own; empty: none',
    occurred_at    DateTime64(3, 'UTC'),
    received_at    DateTime64(3, 'UTC'),
    place          UInt16 COMMENT 'position in its message',
    status         LowCardinality(String) COMMENT 'mapped; empty: not mapped',
    status_detail  UInt32 COMMENT '0: none',
    terminal       Bool,
    out_of_order   Bool COMMENT 'a fact received before it happened after it',
    is_return      Bool,
    dest_cap       LowCardinality(String) COMMENT 'empty: not known or not Italian',
    origin_cap     LowCardinality(String) COMMENT 'empty: not known',
    weight_kg      Nullable(Float32),
    ship_date      Date32,
    version        UInt64,
    INDEX received received_at TYPE minmax GRANULARITY 1,
    CONSTRAINT complete CHECK version > 0 AND courier != '' AND shipment_id > 0 AND fact_key != ''
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYear(ship_date) * 100 + toMonth(ship_date)
ORDER BY (courier, shipment_id, fact_key)
SETTINGS min_age_to_force_merge_seconds = 3600, min_age_to_force_merge_on_partition_only = 1
