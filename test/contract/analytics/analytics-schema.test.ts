/** When the tables of ClickHouse are changed, and by whom: docs/analytics.md, "On a server or a cluster". */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import type { ClickHouseClient } from "@clickhouse/client";
import {
  applySchema,
  SCHEMA,
  SCHEMA_VERSION,
  VERSION_VIEW,
} from "#analytics/clickhouse/apply-schema.ts";
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import { schemaTurn } from "#analytics/clickhouse/schema-turn.ts";
import { type Config, readConfig } from "#core/platform/environment/config.ts";
import { SCHEMA_LOCK_KEY } from "#core/platform/redis/keys.ts";
import { takeLock } from "#core/platform/redis/lock.ts";
import { eventually } from "#test/support/eventually.ts";
import {
  CLUSTER,
  type ClusterServer,
  startClusterServer,
} from "#test/support/servers/clickhouse-cluster.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

/** What the statements of each version are. A change of one needs a new version, or no process would make it. */
const VERSIONS: Readonly<Record<number, string>> = {
  1: "df1b52afcc315634",
  2: "e67528bded074fd0",
  3: "6e1e8126e3280e72",
};

test("the version is raised with every change of a statement", () => {
  const statements = SCHEMA.map((sql) =>
    sql
      .replace(/^--.*\n/gm, "")
      .replace(/\s+/g, " ")
      .trim(),
  );
  const digest = createHash("sha256").update(statements.join(";\n")).digest("hex").slice(0, 16);
  expect(digest).toBe(VERSIONS[SCHEMA_VERSION] ?? "");
  expect(Math.max(...Object.keys(VERSIONS).map(Number))).toBe(SCHEMA_VERSION);
});

describe("on a cluster of which one server is down", () => {
  let server: ClusterServer;
  let config: Config;
  let client: ClickHouseClient;

  beforeAll(async () => {
    server = await startClusterServer();
    config = readConfig({ CLICKHOUSE_URL: server.address, CLICKHOUSE_CLUSTER: CLUSTER });
    client = await openClickhouse(config, "write");
  });
  afterAll(async () => {
    await client.close();
    await server.stop();
  });
  beforeEach(() => {
    server.refuse = () => null;
    server.statements.length = 0;
  });

  /** Statements that every server of the cluster would be sent. */
  const sent = () => server.statements.filter((sql) => sql.includes("ON CLUSTER"));

  async function version(): Promise<number> {
    const answer = await client.query({
      query: `SELECT version FROM ${VERSION_VIEW}`,
      format: "JSONEachRow",
    });
    return (await answer.json<{ version: number }>())[0]?.version ?? 0;
  }

  test("a start makes the tables, and names the version last", async () => {
    await applySchema(client, config);
    expect(sent().length).toBeGreaterThan(SCHEMA.length);
    expect(sent().at(-1)).toContain(`VIEW ${VERSION_VIEW} ON CLUSTER '${CLUSTER}'`);
    expect(await version()).toBe(SCHEMA_VERSION);
  });

  test("a start with the same version and retentions sends no statement to the cluster", async () => {
    await applySchema(client, config, () => Promise.reject(new Error("no turn is needed")));
    expect(sent()).toEqual([]);
  });

  test("a start with another retention sends that statement alone", async () => {
    await applySchema(client, { ...config, attemptRetentionDays: 7 });
    expect(sent()).toEqual([
      `ALTER TABLE attempts ON CLUSTER '${CLUSTER}' MODIFY TTL toDateTime(at) + toIntervalDay(7)`,
    ]);
    await applySchema(client, config);
  });

  test.each(["attempts", "archived_index_rows", "sla"])(
    "%s, which was lost, is made again by the next start",
    async (name) => {
      await client.command({ query: `DROP TABLE ${name}` });
      await applySchema(client, config);
      const exists = await client.query({ query: `EXISTS TABLE ${name}`, format: "JSONEachRow" });
      expect(await exists.json()).toEqual([{ result: 1 }]);
      const { length } = sent();
      await applySchema(client, config);
      expect(sent()).toHaveLength(length);
    },
  );

  test("a start that was interrupted names no version, and the next one begins again", async () => {
    await client.command({ query: `DROP VIEW ${VERSION_VIEW}` });
    server.refuse = (sql) => (sql.includes("VIEW sla") ? "TIMEOUT_EXCEEDED" : null);
    expect(await applySchema(client, config).catch((error) => error)).toMatchObject({
      type: "TIMEOUT_EXCEEDED",
    });
    expect(await version().catch(() => 0)).toBe(0);
    server.refuse = () => null;
    await applySchema(client, config);
    expect(await version()).toBe(SCHEMA_VERSION);
  });

  test("a process of an earlier version leaves the schema of a later one as it is", async () => {
    const later = `CREATE OR REPLACE VIEW ${VERSION_VIEW} AS SELECT ${SCHEMA_VERSION + 1} AS version`;
    await client.command({ query: later });
    await applySchema(client, { ...config, attemptRetentionDays: 8 });
    expect(sent()).toHaveLength(1);
    expect(await version()).toBe(SCHEMA_VERSION + 1);
    await client.command({ query: `DROP VIEW ${VERSION_VIEW}` });
  });

  test("a server that has lost its tables stops no start: it is named, and the others go on", async () => {
    const faults: string[] = [];
    server.refuse = (sql) =>
      sql.includes("TABLE IF NOT EXISTS events ") ? "REPLICA_ALREADY_EXISTS" : null;
    await applySchema(client, config, undefined, (reason) => faults.push(reason));
    expect(faults).toEqual([expect.stringContaining("clickhouse-2")]);
    expect(await version()).toBe(SCHEMA_VERSION);
  });

  test("a start fails where the server that it reaches has not all tables", async () => {
    await client.command({ query: "DROP TABLE audit_log" });
    server.refuse = (sql) =>
      sql.includes("TABLE IF NOT EXISTS audit_log") ? "REPLICA_ALREADY_EXISTS" : null;
    const fault = await applySchema(client, config).catch((error) => error);
    expect(fault).toMatchObject({ type: "REPLICA_ALREADY_EXISTS" });
    server.refuse = () => null;
    await applySchema(client, config);
  });

  test("of two processes that start together one changes the schema, and the other waits for its turn", async () => {
    const { redis, stop } = await openTestRedis();
    try {
      await client.command({ query: `DROP VIEW IF EXISTS ${VERSION_VIEW}` });
      server.statements.length = 0;
      const inTurn = schemaTurn(redis, config);
      const start = () =>
        eventually(
          () =>
            applySchema(client, config, inTurn).then(
              () => true,
              () => false,
            ),
          "the process has had its turn",
        );
      await Promise.all([start(), start()]);
      expect(sent().filter((sql) => sql.includes("VIEW sla"))).toHaveLength(1);
    } finally {
      await stop();
    }
  });

  test("a statement that the cluster refused is not sent again at once", async () => {
    const { redis, stop } = await openTestRedis();
    try {
      await client.command({ query: `DROP VIEW IF EXISTS ${VERSION_VIEW}` });
      server.refuse = (sql) => (sql.includes("VIEW sla") ? "TIMEOUT_EXCEEDED" : null);
      await expect(applySchema(client, config, schemaTurn(redis, config))).rejects.toThrow();
      expect(await takeLock(redis, SCHEMA_LOCK_KEY, { leaseMs: 1_000, waitLimitMs: 0 })).toBeNull();
    } finally {
      await stop();
    }
  });
});
