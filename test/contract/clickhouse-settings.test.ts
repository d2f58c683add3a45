/** The settings of a connection to ClickHouse: for all of its statements, and for no other connection. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ClickHouseClient } from "@clickhouse/client";
import { openBare, openClickhouse } from "#analytics/clickhouse.ts";
import { openTestClickhouse, type TestClickhouse } from "#test/support/clickhouse.ts";
import { CLICKHOUSES } from "#test/support/servers.ts";

describe.each([...CLICKHOUSES])("ClickHouse: %s", (kind) => {
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
