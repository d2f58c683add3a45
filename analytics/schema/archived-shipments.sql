-- One row per archived shipment and batch. Which rows count is known to Redis (`archive-summary.ts`): a shipment that was brought
-- back leaves its row behind until it is deleted, and its next row stands in another batch.
-- Values that search asks for exactly are keyed hashes, 0 where a shipment has none. What is personal is encrypted, and so are the
-- words of couriers and merchants (`archive-words.ts`); ids, times, codes and numbers stand in clear, since they pack well.
-- A shipment is read alone, with its granule: one of 32 rows has some 50 KB, one of 2,048 would have 3 MB. Larger compressed blocks
-- would hold several granules. Small granules mean many marks. They are cached when a part is written and when the server starts:
-- otherwise the first question to each part would wait for them, some 50 ms at 10 million rows.
-- Questions are about the shipments of one channel or a few, most of them by id: rows stand in that order.
CREATE TABLE IF NOT EXISTS archived_shipments
(
    channel          UInt32,
    id               UInt64 CODEC(Delta, ZSTD),
    company          UInt32,
    batch            UInt64 CODEC(Delta, ZSTD),
    updated          UInt32 COMMENT 'statusUpdatedAt, seconds since 1970; 0: never' CODEC(ZSTD),
    shipped          UInt32 COMMENT 'ship date, days since the year 0',
    status           UInt8 COMMENT 'its number',
    numbers          Array(UInt64) COMMENT 'tracking numbers',
    order_reference  UInt64,
    custom1          UInt64,
    custom2          UInt64,
    custom3          UInt64,
    archived_on      Date,
    event_ids        String COMMENT 'JSON' CODEC(ZSTD(3)),
    occurred         String COMMENT 'JSON: times of the events' CODEC(ZSTD(3)),
    rest             String COMMENT 'JSON with marks for what is personal' CODEC(ZSTD(3)),
    words_text       String EPHEMERAL '' COMMENT 'words as base64',
    words            String DEFAULT base64Decode(words_text) CODEC(ZSTD(3)),
    sealed_text      String EPHEMERAL '' COMMENT 'sealed as base64',
    sealed           String DEFAULT base64Decode(sealed_text) COMMENT 'what is personal' CODEC(NONE),
    INDEX ids id TYPE minmax GRANULARITY 64,
    INDEX updates updated TYPE minmax GRANULARITY 64,
    INDEX ships shipped TYPE minmax GRANULARITY 64,
    INDEX by_number numbers TYPE bloom_filter(0.001) GRANULARITY 64,
    INDEX by_reference order_reference TYPE bloom_filter(0.001) GRANULARITY 64,
    INDEX by_custom1 custom1 TYPE bloom_filter(0.01) GRANULARITY 64,
    INDEX by_custom2 custom2 TYPE bloom_filter(0.01) GRANULARITY 64,
    INDEX by_custom3 custom3 TYPE bloom_filter(0.01) GRANULARITY 64,
    CONSTRAINT complete CHECK channel > 0 AND id > 0 AND company > 0 AND batch > 0 AND sealed != ''
)
ENGINE = MergeTree
PARTITION BY toYear(archived_on)
ORDER BY (channel, id)
SETTINGS index_granularity = 32, min_compress_block_size = 8192, prewarm_mark_cache = 1,
    non_replicated_deduplication_window = 1000
