/** What the settings doctor asks a ClickHouse: version, clock, whether a repeated insert into the archive counts once, users, replicas. */
import type { ClickHouseClient } from "@clickhouse/client";
import type { Config } from "#core/config.ts";
import type { ClickhouseFacts, TableReplicas } from "#core/store-doctor.ts";
import { TABLE_NAMES } from "./apply-schema.ts";
import { clickhouseErrorType } from "./clickhouse.ts";
import { examineReader } from "./sql/open-reader.ts";

const OUR_TABLES = TABLE_NAMES.map((name) => `'${name}'`).join(", ");

/** A table of a single server drops repeated inserts by a window of its own; replicated ones do so by themselves. */
const QUERY = `
SELECT
    version() AS version,
    toUnixTimestamp64Milli(now64(3)) AS nowMs,
    (SELECT any(value) FROM system.settings WHERE name = 'insert_deduplicate') AS deduplicates,
    (
        SELECT groupArray(name) FROM system.tables
        WHERE database = currentDatabase()
            AND name IN ('archived_shipments', 'archived_index')
            AND NOT startsWith(engine, 'Replicated')
            AND NOT match(engine_full, 'non_replicated_deduplication_window = [1-9]')
    ) AS repeatingTables`;

/** A table that is not replicated has no row among the replicas. */
const REPLICAS_QUERY = `
SELECT ours.name AS table, toUInt32(replica.total_replicas) AS total, toUInt32(replica.active_replicas) AS active,
    replica.is_readonly = 1 AS readonly
FROM system.tables AS ours
LEFT JOIN system.replicas AS replica ON replica.database = ours.database AND replica.table = ours.name
WHERE ours.database = currentDatabase() AND ours.name IN (${OUR_TABLES})
ORDER BY table
SETTINGS join_use_nulls = 0`;

/** @throws when it cannot be asked */
export async function readClickhouseFacts(
  client: ClickHouseClient,
  config: Config,
): Promise<ClickhouseFacts> {
  const beforeMs = Date.now();
  const result = await client.query({ query: QUERY, format: "JSONEachRow" });
  const [row] = await result.json<
    Pick<ClickhouseFacts, "version" | "deduplicates" | "repeatingTables"> & {
      nowMs: number | string;
    }
  >();
  if (!row) throw new Error("ClickHouse answers no row");
  const { nowMs, ...facts } = row;
  const aheadMs = Math.round(Number(nowMs) - (beforeMs + Date.now()) / 2);
  return {
    ...facts,
    aheadMs,
    reader: await examineReader(config),
    replicas: config.clickhouseCluster === null ? null : await readReplicas(client),
  };
}

async function readReplicas(client: ClickHouseClient): Promise<TableReplicas[] | "hidden"> {
  try {
    const result = await client.query({ query: REPLICAS_QUERY, format: "JSONEachRow" });
    const rows = await result.json<Record<keyof TableReplicas, string | number | boolean>>();
    return rows.map(({ table, total, active, readonly }) => ({
      table: String(table),
      ...{ total: Number(total), active: Number(active), readonly: Boolean(Number(readonly)) },
    }));
  } catch (error) {
    if (clickhouseErrorType(error) === "ACCESS_DENIED") return "hidden";
    throw error;
  }
}
