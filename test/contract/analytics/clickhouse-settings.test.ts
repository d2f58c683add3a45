/** The settings of a connection to ClickHouse: for all of its statements, and for no other connection. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ClickHouseClient } from "@clickhouse/client";
import { openBare, openClickhouse, settingsOf } from "#analytics/clickhouse/clickhouse.ts";
import { openTestClickhouse, type TestClickhouse } from "#test/support/servers/clickhouse.ts";
import { CLICKHOUSE_KINDS } from "#test/support/servers/servers.ts";

describe.each([...CLICKHOUSE_KINDS])("ClickHouse: %s", (kind) => {
  let store: TestClickhouse;
  const opened: ClickHouseClient[] = [];

  beforeAll(async () => {
    store = await openTestClickhouse(kind);
  });
  afterAll(async () => {
    for (const client of opened) await client.close();
    await store.end();
  });

  async function opening(client: Promise<ClickHouseClient>): Promise<ClickHouseClient> {
    opened.push(await client);
    return client;
  }

  async function settingOf(client: ClickHouseClient, name: string, clause = ""): Promise<string> {
    const query = `SELECT toString(getSetting('${name}')) AS value ${clause}`;
    const answer = await client.query({ query, format: "JSONEachRow" });
    const [row] = await answer.json<{ value: string }>();
    return row?.value ?? "";
  }

  test("hold for every statement, even after one that overrides them", async () => {
    const reader = await opening(openClickhouse(store.config, "read"));
    expect(await settingOf(reader, "max_execution_time")).toBe("5");
    expect(await settingOf(reader, "max_execution_time", "SETTINGS max_execution_time = 9")).toBe(
      "9",
    );
    expect(await settingOf(reader, "max_execution_time")).toBe("5");
    expect(await settingOf(reader, "max_memory_usage")).toBe(String(512 * 1024 * 1024));
  });

  test("are those of this connection alone", async () => {
    const survey = await opening(openClickhouse(store.config, "survey"));
    const bare = await opening(openBare(store.config, { max_threads: 1, max_block_size: "777" }));
    expect(await settingOf(survey, "max_execution_time")).toBe("20");
    expect(await settingOf(bare, "max_block_size")).toBe("777");
    expect(await settingOf(survey, "max_block_size")).not.toBe("777");
    expect(await settingOf(bare, "max_execution_time")).toBe("0");
    expect(await settingOf(store.writer, "max_partitions_per_insert_block")).toBe("0");
    expect(await settingOf(bare, "max_partitions_per_insert_block")).not.toBe("0");
  });
});

describe("the settings of a cluster", () => {
  const config = { clickhouseCluster: "main" };

  test("are known to the engine, which takes their values: a misspelt one would be refused by a server alone", async () => {
    const store = await openTestClickhouse();
    try {
      for (const use of ["write", "read", "survey"] as const) {
        const settings = Object.entries(settingsOf(config, use));
        const set = settings.map(([name, value]) => `${name} = '${value}'`).join(", ");
        await store.writer.command({ query: `SELECT 1 SETTINGS ${set}` });
        const answer = await store.writer.query({
          query: "SELECT name FROM system.settings WHERE name IN {names:Array(String)}",
          query_params: { names: settings.map(([name]) => name) },
          format: "JSONEachRow",
        });
        expect(await answer.json()).toHaveLength(settings.length);
      }
    } finally {
      await store.end();
    }
  });

  test("wait for most replicas and never for one that is down", () => {
    // Asserted as text: an engine without replicas waits for none.
    expect(settingsOf(config, "write")).toMatchObject({
      insert_quorum: "auto",
      lightweight_deletes_sync: "1",
      distributed_ddl_output_mode: "null_status_on_timeout_only_active",
    });
    expect(settingsOf({ clickhouseCluster: null }, "write")).not.toContainKey("insert_quorum");
    expect(settingsOf(config, "read")).not.toContainKey("insert_quorum");
  });
});
