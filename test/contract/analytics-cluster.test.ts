/** `CLICKHOUSE_CLUSTER`: the schema for replicas, as far as one engine without a cluster can tell. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { applySchema, COLUMNS, FEEDS, TABLES, VIEWS } from "#analytics/apply-schema.ts";
import { pathsQuery, readClickhouseFacts } from "#analytics/clickhouse-facts.ts";
import { KEEPER_PATH, onCluster } from "#analytics/on-cluster.ts";
import { openTestClickhouse, type TestClickhouse } from "#test/support/clickhouse.ts";

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
