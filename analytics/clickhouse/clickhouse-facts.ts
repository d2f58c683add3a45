/** What the settings doctor asks a ClickHouse: version, clock, whether a repeated insert into the archive counts once, users, replicas. */
import type { ClickHouseClient } from "@clickhouse/client";
import { examineReader } from "#analytics/sql/open-reader.ts";
import type { ClickhouseFacts, TablePaths, TableReplicas } from "#core/doctor/store-doctor.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { TABLE_NAMES } from "./apply-schema.ts";
import { clickhouseErrorType } from "./clickhouse.ts";

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

/**
 * The paths in Keeper that the replicas of each table have, over all servers that answer. Two paths are two tables: a replica that was
 * made again with a path of its own would have no row of the other's.
 * @param source all servers of the cluster, as a table function over `system.replicas`
 */
export const pathsQuery = (source: string) => `
SELECT table, arraySort(groupUniqArray(zookeeper_path)) AS paths, toUInt32(count()) AS replicas
FROM ${source}
WHERE database = (SELECT currentDatabase()) AND table IN (${OUR_TABLES})
GROUP BY table
ORDER BY table
SETTINGS skip_unavailable_shards = 1`;

const everyReplica = (cluster: string) => `clusterAllReplicas('${cluster}', system.replicas)`;

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
    paths:
      config.clickhouseCluster === null ? null : await readPaths(client, config.clickhouseCluster),
  };
}

async function readPaths(
  client: ClickHouseClient,
  cluster: string,
): Promise<TablePaths[] | "hidden"> {
  try {
    const query = pathsQuery(everyReplica(cluster));
    const result = await client.query({ query, format: "JSONEachRow" });
    return await result.json<TablePaths>();
  } catch (error) {
    // The reason is in what its name or its rights lack: both are the operator's to mend.
    const type = clickhouseErrorType(error);
    if (type === "ACCESS_DENIED" || type === "CLUSTER_DOESNT_EXIST") return "hidden";
    throw error;
  }
}

async function readReplicas(client: ClickHouseClient): Promise<TableReplicas[] | "hidden"> {
  try {
    const result = await client.query({ query: REPLICAS_QUERY, format: "JSONEachRow" });
    const rows = await result.json<Record<keyof TableReplicas, string | number | boolean>>();
    return rows.map(({ table, total, active, readonly }) => ({
      table: String(table),
      total: Number(total),
      active: Number(active),
      readonly: Boolean(Number(readonly)),
    }));
  } catch (error) {
    if (clickhouseErrorType(error) === "ACCESS_DENIED") return "hidden";
    throw error;
  }
}
