-- Which granules a question can skip: rows that stand in one order are asked for by values of another, and by their batches.
ALTER TABLE archived_index
    ADD INDEX IF NOT EXISTS batches batch TYPE minmax GRANULARITY 1,
    ADD INDEX IF NOT EXISTS updates updated TYPE minmax GRANULARITY 1,
    ADD INDEX IF NOT EXISTS ships shipped TYPE minmax GRANULARITY 1,
    ADD INDEX IF NOT EXISTS by_custom1 custom1 TYPE bloom_filter(0.01) GRANULARITY 16,
    ADD INDEX IF NOT EXISTS by_custom2 custom2 TYPE bloom_filter(0.01) GRANULARITY 16,
    ADD INDEX IF NOT EXISTS by_custom3 custom3 TYPE bloom_filter(0.01) GRANULARITY 16
