-- What search asks of archived shipments, in every order that it asks in: one row for each order of a shipment and for each of its
-- values (`archived-index-rows.sql`), so that a question reads one short range. A row of channel 0 says that all of
-- `archived_shipments` stands here (`archive-index.ts`).
-- A page reads at least one granule of each column from every part that may have its rows. So the table has no partitions, which
-- keeps its parts few, and a compressed block holds one granule. The skip indices
-- (`archived-index-ranges.sql`) tell which granules need not be read.
CREATE TABLE IF NOT EXISTS archived_index
(
    channel          UInt32,
    kind             UInt8 COMMENT '0 id, 1 ship date, 2 statusUpdatedAt, 3 tracking number, 4 order reference, 5 to 7 custom1 to custom3',
    value            UInt64 COMMENT 'of this kind, as in archived_shipments; 0 for kind 0' CODEC(ZSTD),
    id               UInt64 CODEC(Delta, ZSTD),
    company          UInt32 CODEC(ZSTD),
    batch            UInt64 CODEC(Delta, ZSTD),
    updated          UInt32 CODEC(ZSTD),
    shipped          UInt32 CODEC(ZSTD),
    status           UInt8 CODEC(ZSTD),
    order_reference  UInt64 COMMENT '0 for kinds 0 to 2' CODEC(ZSTD),
    custom1          UInt64 CODEC(ZSTD),
    custom2          UInt64 CODEC(ZSTD),
    custom3          UInt64 CODEC(ZSTD)
)
ENGINE = MergeTree
ORDER BY (channel, kind, value, id)
SETTINGS index_granularity = 2048, prewarm_mark_cache = 1, min_compress_block_size = 16384, max_compress_block_size = 65536,
    non_replicated_deduplication_window = 1000
