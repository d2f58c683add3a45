/** `CLICKHOUSE_CLUSTER`: the schema for replicas, as far as one engine without a cluster can tell. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { createClient } from "@clickhouse/client";
import { applySchema, COLUMNS, FEEDS, TABLES, VIEWS } from "#analytics/clickhouse/apply-schema.ts";
import { pathsQuery, readClickhouseFacts } from "#analytics/clickhouse/clickhouse-facts.ts";
import { KEEPER_PATH, onCluster } from "#analytics/clickhouse/on-cluster.ts";
import { examinePaths } from "#core/doctor/store-doctor.ts";
import { openTestClickhouse, type TestClickhouse } from "#test/support/servers/clickhouse.ts";
import { startClickhouseHttp } from "#test/support/servers/clickhouse-http.ts";

let store: TestClickhouse;

beforeAll(async () => {
  store = await openTestClickhouse();
});
afterAll(() => store.end());

/** The statement as the engine's own parser understands it. */
async function parsed(statement: string): Promise<string> {
  const answer = await store.writer.query({
    query: "SELECT formatQuerySingleLine({statement:String}) AS text",
    query_params: { statement },
    format: "JSONEachRow",
  });
  return (await answer.json<{ text: string }>())[0]?.text ?? "";
}

describe("the statements of the schema", () => {
  test("make every table on all replicas, with the same columns, key, partitions and versions", async () => {
    for (const sql of TABLES) {
      const [alone, clustered] = [await parsed(sql), await parsed(onCluster(sql, "main"))];
      expect(clustered).toMatch(/^CREATE TABLE IF NOT EXISTS \w+ ON CLUSTER main /);
      expect(clustered).toMatch(/ENGINE = Replicated(Replacing)?MergeTree/);
      expect(
        clustered
          .replace(" ON CLUSTER main", "")
          .replace(/ENGINE = Replicated(\w+)\('[^']*', '[^']*'(?:, )?/, "ENGINE = $1(")
          .replace("MergeTree()", "MergeTree"),
      ).toBe(alone);
      expect(clustered).toContain(`('${KEEPER_PATH}', '{replica}'`);
    }
  });

  test("make every view on all nodes, and tell all of them a new column and a new retention", async () => {
    for (const sql of VIEWS) {
      const clustered = await parsed(onCluster(sql, "main"));
      expect(clustered).toMatch(/^CREATE OR REPLACE VIEW \w+ ON CLUSTER main /);
      expect(clustered.replace(" ON CLUSTER main", "")).toBe(await parsed(sql));
    }
    for (const sql of FEEDS) {
      const clustered = await parsed(onCluster(sql, "main"));
      expect(clustered).toMatch(/^CREATE MATERIALIZED VIEW IF NOT EXISTS \w+ ON CLUSTER main TO /);
      expect(clustered.replace(" ON CLUSTER main", "")).toBe(await parsed(sql));
    }
    for (const sql of COLUMNS) {
      expect(await parsed(onCluster(sql, "main"))).toMatch(/^ALTER TABLE \w+ ON CLUSTER main /);
    }
    const ttl = "ALTER TABLE events MODIFY TTL toDateTime(received_at) + toIntervalMonth(2)";
    expect(await parsed(onCluster(ttl, "main"))).toStartWith("ALTER TABLE events ON CLUSTER main");
  });

  test("stay as they are without a cluster", () => {
    for (const sql of [...TABLES, ...FEEDS, ...COLUMNS, ...VIEWS])
      expect(onCluster(sql, null)).toBe(sql);
  });

  test("are sent so when one is configured: a server that has no such cluster says so", async () => {
    const options = { ...store.config, clickhouseCluster: "main" };
    const fault = await applySchema(store.writer, options).catch((error) => error);
    expect(fault).toMatchObject({ type: "CLUSTER_DOESNT_EXIST" });
  });
});

test("the settings doctor names tables that a cluster would not replicate", async () => {
  const options = { ...store.config, clickhouseCluster: "main" };
  await applySchema(store.writer, store.config);
  const { replicas } = await readClickhouseFacts(store.writer, options);
  const alone = { total: 0, active: 0, readonly: false };
  expect(replicas).toEqual(
    [
      "archived_index",
      "archived_shipments",
      "attempts",
      "audit_log",
      "deliveries",
      "event_outcomes",
      "events",
    ].map((table) => ({
      table,
      ...alone,
    })),
  );
  expect((await readClickhouseFacts(store.writer, store.config)).replicas).toBeNull();
});

test("the settings doctor asks all replicas for the paths of our tables in Keeper, in words that the engine understands", async () => {
  await applySchema(store.writer, store.config);
  const clustered = await parsed(pathsQuery("clusterAllReplicas('main', system.replicas)"));
  expect(clustered).toContain("FROM clusterAllReplicas('main', system.replicas)");
  expect(clustered).toEndWith("SETTINGS skip_unavailable_shards = 1");
  // One server that is asked as a remote one: it has the tables, and none of them in Keeper.
  const query = pathsQuery("remote('127.0.0.1', system.replicas)");
  const answer = await store.writer.query({ query, format: "JSONEachRow" });
  expect(await answer.json()).toEqual([]);
  const options = { ...store.config, clickhouseCluster: "main" };
  expect((await readClickhouseFacts(store.writer, options)).paths).toBe("hidden");
  expect((await readClickhouseFacts(store.writer, store.config)).paths).toBeNull();
});

describe("the example of a cluster", () => {
  test("has three replicas and a Keeper beside each, as most of three may be two", async () => {
    const folder = join(import.meta.dir, "../../../deploy/clickhouse");
    const configFile = join(folder, "cluster.xml");
    const server = await startClickhouseHttp([], configFile);
    const client = createClient({ url: server.address });
    const names = ["clickhouse-1", "clickhouse-2", "clickhouse-3"];
    try {
      const answer = await client.query({
        query: "SELECT host_name FROM system.clusters WHERE cluster = 'waybill' ORDER BY host_name",
        format: "JSONEachRow",
      });
      expect(await answer.json()).toEqual(names.map((host_name) => ({ host_name })));
    } finally {
      await client.close();
      await server.stop();
    }
    // As text: the engine in the tests has no network to look for a Keeper in.
    const [cluster, keeper] = await Promise.all(
      ["cluster.xml", "keeper.xml"].map((name) => Bun.file(join(folder, name)).text()),
    );
    const hosts = (text = "", tag: string) =>
      [...text.matchAll(new RegExp(`<${tag}>(clickhouse-\\d)</${tag}>`, "g"))].map(
        ([, host]) => host,
      );
    const keepers = cluster?.slice(cluster.indexOf("<zookeeper>"));
    expect(hosts(keepers, "host")).toEqual(names);
    expect(hosts(keeper, "hostname")).toEqual(names);
    const compose = await Bun.file(join(import.meta.dir, "../../../compose.cluster.yaml")).text();
    for (const [at, name] of names.entries()) {
      expect(compose).toContain(
        `hostname: ${name}\n    environment: { <<: *clickhouse-user, KEEPER_ID: "${at + 1}" }`,
      );
    }
  });
});

test("the settings doctor names tables whose path in Keeper has a UUID, and finds fault with several paths alone", () => {
  const uuid = "/clickhouse/tables/7d53db47-1c9e-4d2f-9c8b-3b1e5a3c0001/1";
  const own = "/clickhouse/tables/waybill/attempts";
  const tables = [
    { table: "attempts", paths: [own], replicas: 3 },
    { table: "events", paths: [uuid], replicas: 3 },
  ];
  const found = "yes; by a UUID, from an earlier version: events";
  expect(examinePaths(tables)).toMatchObject({ ok: true, found });
  const split = [{ table: "events", paths: [own, uuid], replicas: 3 }];
  expect(examinePaths(split)).toMatchObject({ ok: false, found: `events: ${own}, ${uuid}` });
});
