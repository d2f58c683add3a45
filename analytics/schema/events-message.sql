-- The message that brought a fact, as its courier named it, and how an event or a message is found.
ALTER TABLE events
    ADD COLUMN IF NOT EXISTS message_id String COMMENT 'as the courier named it; empty: set aside, or before it was kept',
    ADD INDEX IF NOT EXISTS by_fact fact_key TYPE bloom_filter GRANULARITY 1,
    ADD INDEX IF NOT EXISTS by_message message_id TYPE bloom_filter GRANULARITY 1
