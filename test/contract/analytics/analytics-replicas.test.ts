/**
 * Replicas of our tables, in a real Keeper: which of them belong together. docs/analytics.md, "On a server or a cluster".
 *
 * The embedded engine has a Keeper of its own, and its tables stand in it as a server's do. What it cannot do is fetch rows from another
 * replica, since nothing listens for them, so quorums and the way of rows are not tried here.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ClickHouseClient } from "@clickhouse/client";
import { applySchema, TABLE_NAMES, TABLES } from "#analytics/clickhouse/apply-schema.ts";
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import { joining, onCluster } from "#analytics/clickhouse/on-cluster.ts";
import { readKnown, readSchema } from "#analytics/clickhouse/read-schema.ts";
import { readConfig } from "#core/platform/environment/config.ts";
import { openTestClickhouse } from "#test/support/servers/clickhouse.ts";
import {
  CLUSTER,
  type ClusterServer,
  startClusterServer,
} from "#test/support/servers/clickhouse-cluster.ts";

let server: ClusterServer;
let client: ClickHouseClient;

beforeAll(async () => {
  server = await startClusterServer(true);
  client = await openClickhouse(readConfig({ CLICKHOUSE_URL: server.address }), "write");
});
afterAll(async () => {
  await client.close();
  await server.stop();
});

async function ask<Row>(query: string, from = client): Promise<Row[]> {
  return (await from.query({ query, format: "JSONEachRow" })).json<Row>();
}

interface Replica {
  readonly database: string;
  readonly table: string;
  readonly path: string;
  readonly total: number;
}
const REPLICAS = `SELECT database, table, zookeeper_path AS path, toUInt32(total_replicas) AS total
  FROM system.replicas ORDER BY database, table`;

describe("tables of a new installation", () => {
  test("have paths in Keeper that name the database and the table, and the replica by its macro", async () => {
    for (const sql of TABLES) await client.command({ query: onCluster(sql, CLUSTER) });
    const own = (await ask<Replica>(REPLICAS)).filter(({ database }) => database === "default");
    expect(own.map(({ path }) => path)).toEqual(
      TABLE_NAMES.toSorted().map((name) => `/clickhouse/tables/default/${name}`),
    );
    const [made] = await ask<{ name: string }>(
      "SELECT DISTINCT replica_name AS name FROM system.replicas",
    );
    expect(made).toEqual({ name: "clickhouse-1" });
  });

  test("are not made a second time beside those of a replica that was lost without being dropped in Keeper", async () => {
    await client.command({ query: "CREATE DATABASE rebuilt" });
    const sql = onCluster(TABLES[0] ?? "", CLUSTER)
      .replace("{database}", "default")
      .replace("EXISTS deliveries", "EXISTS rebuilt.deliveries");
    const fault = await client.command({ query: sql }).catch((error) => error);
    expect(fault).toMatchObject({ type: "REPLICA_ALREADY_EXISTS" });
  });
});

describe("a server that has lost its tables", () => {
  /** Tables as they are after years: columns and indices were added, and a TTL. */
  async function tablesOfToday(): Promise<{ name: string; statement: string }[]> {
    const store = await openTestClickhouse();
    try {
      await applySchema(store.writer, store.config);
      return await ask(
        `SELECT name, create_table_query AS statement FROM system.tables
         WHERE database = 'default' AND name IN (${TABLE_NAMES.map((name) => `'${name}'`)}) ORDER BY name`,
        store.writer,
      );
    } finally {
      await store.end();
    }
  }

  test("joins the others, whatever paths an earlier version gave their tables, with every column, index and TTL that those have", async () => {
    await client.command({ query: "CREATE DATABASE others" });
    const today = await tablesOfToday();
    for (const { name } of today)
      await client.command({ query: `DROP TABLE default.${name} SYNC` });
    // As the version before made them: a path with a UUID, which is another one wherever the table is made.
    const known: { name: string; statement: string; path: string }[] = [];
    for (const [at, { name, statement }] of today.entries()) {
      const path = `/clickhouse/tables/7d53db47-1c9e-4d2f-9c8b-3b1e5a3c000${at}/1`;
      const replicated = statement
        .replace("CREATE TABLE default.", "CREATE TABLE others.")
        .replace(
          /ENGINE = (\w*MergeTree)(?:\(([^)]*)\))?/,
          (_, kind, own = "") =>
            `ENGINE = Replicated${kind}('${path}', 'clickhouse-2'${own && `, ${own}`})`,
        );
      await client.command({ query: replicated });
      const [shown] = await ask<{ statement: string }>(
        `SELECT create_table_query AS statement FROM system.tables WHERE database = 'others' AND name = '${name}'`,
      );
      known.push({ name, path, statement: shown?.statement ?? "" });
    }
    for (const table of known) {
      await client.command({ query: joining(table, CLUSTER) ?? "" });
    }
    const rows = await ask<Replica>(REPLICAS);
    for (const { name, path } of known) {
      const replicas = rows.filter(({ table }) => table === name);
      expect(replicas).toEqual([
        { database: "default", table: name, path, total: 2 },
        { database: "others", table: name, path, total: 2 },
      ]);
    }
  });

  test("is told the paths that its tables have on the servers that answer", async () => {
    const names = TABLE_NAMES.toSorted();
    const known = await readKnown(
      client,
      CLUSTER,
      { database: "others", names },
      await ask(
        "SELECT 'other' AS host, name, create_table_query AS statement FROM system.tables WHERE database = 'others'",
      ),
    );
    expect(known.map(({ name }) => name).toSorted()).toEqual(names);
    expect(known.map(({ path }) => path).every((path) => path.endsWith("/1"))).toBe(true);
    const schema = await readSchema(client, CLUSTER, {
      names: [...names, "nowhere"],
      versionView: "no_version",
    });
    expect(schema).toMatchObject({ version: 0, lowest: 0, missing: ["nowhere"] });
  });
});

test("a table that is not replicated is no example for others", () => {
  const table = {
    name: "events",
    statement: "CREATE TABLE waybill.events (`a` UInt8) ENGINE = MergeTree",
    path: "",
  };
  expect(joining(table, CLUSTER)).toBeNull();
});
