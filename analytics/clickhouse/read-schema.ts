/** What the database has of our schema: on the server that answers, and on all servers of its cluster. */
import type { ClickHouseClient } from "@clickhouse/client";
import { clickhouseErrorType } from "./clickhouse.ts";
import type { KnownTable } from "./on-cluster.ts";

export interface Schema {
  /** Of the server that answers; 0 = none. */
  readonly version: number;
  /** By the names of its tables, what would make them as they are, as ClickHouse writes it. */
  readonly statements: ReadonlyMap<string, string>;
  /** Its tables and views that are missing. */
  readonly missing: readonly string[];
  /** The lowest version of a server of the cluster that answers and has all tables; 0 where one lacks any. */
  readonly lowest: number;
  /** Tables that some servers of the cluster have and others lack, as those have them. */
  readonly known: readonly KnownTable[];
}

interface Names {
  readonly names: readonly string[];
  /** Its text names the version. */
  readonly versionView: string;
}

/** No statement is needed: no server has an earlier schema or lacks a table. Those of a later version are not ours to complete. */
export function isCurrent({ version, lowest }: Schema, wanted: number): boolean {
  return version > wanted || lowest >= wanted;
}

interface TableRow {
  readonly host: string;
  readonly name: string;
  readonly statement: string;
}

/** A row of this table comes from every server, also from one that has nothing of ours. */
const EVERYWHERE = "one";

/** @param source system.tables, or all those of a cluster */
const tablesQuery = (source: string) => `
SELECT hostName() AS host, name, create_table_query AS statement
FROM ${source}
WHERE (database = {database:String} AND name IN {names:Array(String)})
    OR (database = 'system' AND name = '${EVERYWHERE}')
SETTINGS skip_unavailable_shards = 1`;

/** Where the servers disagree, most replicas tell. */
const pathsQuery = (cluster: string) => `
SELECT table AS name, argMax(zookeeper_path, total_replicas) AS path
FROM clusterAllReplicas('${cluster}', system.replicas)
WHERE database = {database:String} AND table IN {names:Array(String)}
GROUP BY table
SETTINGS skip_unavailable_shards = 1`;

export async function readSchema(
  clickhouse: ClickHouseClient,
  cluster: string | null,
  { names, versionView }: Names,
): Promise<Schema> {
  const [{ database = "" } = {}] = await ask<{ database: string }>(
    clickhouse,
    "SELECT currentDatabase() AS database",
  );
  const params = { database, names: [...names, versionView] };
  const own = await ask<TableRow>(clickhouse, tablesQuery("system.tables"), params);
  const all = cluster === null ? own : await askAll(clickhouse, cluster, params, own);
  const statements = new Map(own.map(({ name, statement }) => [name, statement]));
  const servers = [...Map.groupBy(all, ({ host }) => host).values()];
  const version = versionOf(own, versionView);
  const lowest = Math.min(
    version,
    ...servers.map((rows) => completeVersion(rows, names, versionView)),
  );
  const lacking = names.filter((name) =>
    servers.some((rows) => !rows.some((row) => row.name === name)),
  );
  const others = all.filter(({ name }) => lacking.includes(name));
  return {
    version,
    statements,
    lowest,
    missing: names.filter((name) => !statements.has(name)),
    known:
      cluster === null || others.length === 0
        ? []
        : await readKnown(clickhouse, cluster, params, others),
  };
}

function versionOf(rows: readonly TableRow[], versionView: string): number {
  const view = rows.find(({ name }) => name === versionView)?.statement ?? "";
  return Number(/SELECT (\d+) AS version/.exec(view)?.[1] ?? 0);
}

function completeVersion(
  rows: readonly TableRow[],
  names: readonly string[],
  versionView: string,
): number {
  const has = new Set(rows.map(({ name }) => name));
  return names.every((name) => has.has(name)) ? versionOf(rows, versionView) : 0;
}

/** Of all servers that answer. Where our user may not ask them, this one stands for the others. */
async function askAll(
  clickhouse: ClickHouseClient,
  cluster: string,
  params: Record<string, unknown>,
  own: TableRow[],
): Promise<TableRow[]> {
  try {
    const source = `clusterAllReplicas('${cluster}', system.tables)`;
    return await ask<TableRow>(clickhouse, tablesQuery(source), params);
  } catch (error) {
    if (clickhouseErrorType(error) === "CLUSTER_DOESNT_EXIST") throw error;
    return own;
  }
}

/** The tables with their paths in Keeper; none where our user may not ask for those. */
export async function readKnown(
  clickhouse: ClickHouseClient,
  cluster: string,
  params: Record<string, unknown>,
  tables: readonly TableRow[],
): Promise<KnownTable[]> {
  try {
    const rows = await ask<{ name: string; path: string }>(clickhouse, pathsQuery(cluster), params);
    return rows.flatMap(({ name, path }) => {
      const statement = tables.find((row) => row.name === name)?.statement;
      return statement === undefined ? [] : [{ name, statement, path }];
    });
  } catch {
    return [];
  }
}

async function ask<Row>(
  clickhouse: ClickHouseClient,
  query: string,
  query_params: Record<string, unknown> = {},
): Promise<Row[]> {
  const answer = await clickhouse.query({ query, query_params, format: "JSONEachRow" });
  return answer.json<Row>();
}
