/** What the settings doctor asks a ClickHouse: version, clock, and whether an insert that is repeated counts once. */
import type { ClickHouseClient } from "@clickhouse/client";
import type { ClickhouseFacts } from "#core/store-doctor.ts";

/** A table of a single server drops repeated inserts by a window of its own; replicated ones do so by themselves. */
const QUERY = `
SELECT
    version() AS version,
    toUnixTimestamp64Milli(now64(3)) AS nowMs,
    (SELECT any(value) FROM system.settings WHERE name = 'insert_deduplicate') AS deduplicates,
    (
        SELECT groupArray(name) FROM system.tables
        WHERE database = currentDatabase()
            AND name IN ('deliveries', 'events', 'attempts', 'archived_shipments')
            AND NOT startsWith(engine, 'Replicated')
            AND NOT match(engine_full, 'non_replicated_deduplication_window = [1-9]')
    ) AS repeatingTables`;

/** @throws when it cannot be asked */
export async function readClickhouseFacts(client: ClickHouseClient): Promise<ClickhouseFacts> {
  const beforeMs = Date.now();
  const result = await client.query({ query: QUERY, format: "JSONEachRow" });
  const [row] = await result.json<Omit<ClickhouseFacts, "aheadMs"> & { nowMs: number | string }>();
  if (!row) throw new Error("ClickHouse answers no row");
  const { nowMs, ...facts } = row;
  return { ...facts, aheadMs: Math.round(Number(nowMs) - (beforeMs + Date.now()) / 2) };
}
