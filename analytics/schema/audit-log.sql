-- One row per change in the control panel. An entry never changes, so a row that is written again is the same and counts once.
-- Accounts' addresses are in it, and no secret and nothing of a recipient. Operators alone read it, through the panel.
CREATE TABLE IF NOT EXISTS audit_log
(
    written   DateTime64(3, 'UTC') COMMENT 'when the entry was written, by the clock of Redis',
    sequence  UInt64 COMMENT 'tells those of one millisecond apart',
    tenant    LowCardinality(String) COMMENT 'operators, company <code>, courier <code>; empty: written by an old version',
    at        DateTime64(3, 'UTC') COMMENT 'the service clock',
    actor     String,
    action    LowCardinality(String) COMMENT 'method and path of the call',
    target    String,
    before    String COMMENT 'JSON',
    after     String COMMENT 'JSON',
    CONSTRAINT complete CHECK actor != '' AND action != ''
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(written)
ORDER BY (written, sequence)
SETTINGS min_age_to_force_merge_seconds = 3600, min_age_to_force_merge_on_partition_only = 1
