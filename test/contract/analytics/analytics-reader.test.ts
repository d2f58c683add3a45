/** The data team's own user on a server: what `analytics/sql/read-only-user.sql` grants, and that it grants no more. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { ClickHouseClient } from "@clickhouse/client";
import { applySchema } from "#analytics/clickhouse/apply-schema.ts";
import { clickhouseErrorType, openBare, openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import { type Config, readConfig } from "#core/platform/environment/config.ts";
import { asReader, READER_STATEMENTS } from "#test/support/servers/clickhouse-reader.ts";
import { startTestClickhouse, type TestServer } from "#test/support/servers/servers.ts";

const statements = READER_STATEMENTS;

let server: TestServer;
let config: Config;
let writer: ClickHouseClient;
let reader: ClickHouseClient;

beforeAll(async () => {
  server = await startTestClickhouse("server");
  config = readConfig({ CLICKHOUSE_URL: server.address ?? "" });
  writer = await openClickhouse(config, "write");
  await applySchema(writer, config);
  reader = await openBare({ ...config, clickhouseUrl: asReader(server.address ?? "") }, {});
});

afterAll(async () => {
  await reader?.close();
  await writer?.close();
  await server?.stop();
});

/** Shipments that left Redis are the merchants', the audit log is the operators', and the schema's version is the product's own. */
const NOT_THEIRS = [
  ...["archived_shipments", "archived_index", "archived_index_rows"],
  ...["audit_log", "waybill_schema"],
];

const namesOf = async () => {
  const answer = await writer.query({
    query: "SELECT name FROM system.tables WHERE database = currentDatabase() ORDER BY name",
    format: "JSONEachRow",
  });
  const names = (await answer.json<{ name: string }>()).map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(NOT_THEIRS));
  return names.filter((name) => !NOT_THEIRS.includes(name));
};

const refusal = (query: string) =>
  reader.command({ query }).then(
    () => null,
    (error) => clickhouseErrorType(error),
  );

test("every statement of the file is one that the engine's parser takes, and the password is bound", async () => {
  expect(statements.length).toBeGreaterThan(5);
  for (const statement of statements) {
    const answer = await writer.query({
      query: "SELECT formatQuery({statement:String}) AS text",
      query_params: { statement },
      format: "JSONEachRow",
    });
    const [found] = await answer.json<{ text: string }>();
    expect(found?.text).toStartWith(statement.slice(0, 5));
  }
  expect(statements.join("\n")).toContain("BY {password:String}");
});

test("the grants name every table and view of the schema but those of others, and nothing else", async () => {
  const granted = statements.flatMap(
    (one) => /^GRANT SELECT ON default\.(\w+) /.exec(one)?.[1] ?? [],
  );
  expect(granted.sort()).toEqual(await namesOf());
  expect(statements.filter((one) => one.startsWith("GRANT"))).toHaveLength(granted.length);
});

test("the user reads every table and view but those of others", async () => {
  for (const name of await namesOf()) {
    const answer = await reader.query({
      query: `SELECT count() AS n FROM ${name}`,
      format: "JSONEachRow",
    });
    expect(Number((await answer.json<{ n: string }>())[0]?.n)).toBe(0);
  }
});

test("the user writes nothing, changes no setting, and reaches nothing else", async () => {
  for (const query of [
    "INSERT INTO attempts SELECT * FROM attempts",
    "DROP TABLE deliveries",
    "TRUNCATE TABLE events",
    "CREATE TABLE x (a UInt8) ENGINE = Memory",
    "ALTER TABLE events MODIFY TTL toDateTime(received_at)",
    "SET max_execution_time = 0",
    "SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')",
  ]) {
    expect([query, await refusal(query)]).toEqual([
      query,
      expect.stringMatching(/^(READONLY|ACCESS_DENIED)$/),
    ]);
  }
});

test("a wrong password is refused, and so is a limit that the user brings along", async () => {
  const url = new URL(server.address ?? "");
  [url.username, url.password] = ["waybill_reader", "guess"];
  const guess = await openBare({ ...config, clickhouseUrl: String(url) }, {});
  const error = await guess.query({ query: "SELECT 1" }).catch((thrown) => thrown);
  expect(clickhouseErrorType(error)).toBe("AUTHENTICATION_FAILED");
  await guess.close();
  const raised = await reader
    .query({ query: "SELECT 1", clickhouse_settings: { max_execution_time: 600 } })
    .catch((thrown) => thrown);
  expect(clickhouseErrorType(raised)).toBe("READONLY");
});
