/** The SQL port: ClickHouse's HTTP interface for drivers and BI tools, which opens what SQL access opens and nothing else. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type ClickHouseClient, createClient } from "@clickhouse/client";
import { Elysia } from "elysia";
import {
  clickhouseRoutes,
  SQL_USER,
  STATEMENT_CHARACTERS,
} from "#analytics/sql/clickhouse-routes.ts";
import { ASKABLE } from "#analytics/sql/open-reader.ts";
import { openSqlAccess, type SqlAccess } from "#analytics/sql-access.ts";
import { readConfig } from "#core/platform/environment/config.ts";
import { openTestClickhouse, type TestClickhouse } from "#test/support/servers/clickhouse.ts";
import { dbtSources, SOURCES_PAGE } from "#tools/dbt-sources/dbt-sources.ts";

const PASSWORD = "reader-password-1234";

/** Each would show a name of a table or a database that is not ours; `SYSTEM` is one of the catalogue's tables. */
const CATALOGUE_ATTACKS = [
  "SELECT name FROM system.tables WHERE database = 'system' OR name = 'audit_log' OR 1",
  "SELECT name FROM (SELECT * FROM system.tables)",
  "SELECT t.name FROM system.tables AS t CROSS JOIN (SELECT 1 AS one) AS u",
  "SELECT `system.tables`.name FROM system.tables AS `system.tables`",
  "SELECT b.name FROM (SELECT 1 AS one) AS a LEFT JOIN system.tables AS b ON 1",
  "WITH x AS (SELECT * FROM system.tables) SELECT name FROM x UNION ALL SELECT table FROM system.columns",
  "SELECT DISTINCT table AS name FROM system.columns",
  "SELECT arrayJoin(['audit_log', 'archived_shipments', 'deliveries']) AS name WHERE name IN (SELECT name FROM system.tables)",
  "SELECT name FROM system.databases WHERE name != currentDatabase()",
];

const REFUSED = [
  "SELECT * FROM audit_log",
  "SELECT * FROM system.processes",
  "SELECT * FROM system.users",
  "SELECT file('/etc/passwd')",
  "SELECT name FROM merge('system', 'tables')",
  "SELECT 1 SETTINGS additional_table_filters = {}",
  "SET readonly = 0",
  "INSERT INTO deliveries (shipment_id) VALUES (1)",
  "DROP TABLE deliveries",
  "SELECT 1 FORMAT Template",
  "SELECT 1 INTO OUTFILE 'x'",
  "SELECT 1; SELECT 2",
];

describe("the embedded ClickHouse", () => {
  let store: TestClickhouse;
  let access: SqlAccess;
  let server: Bun.Server<unknown>;
  let client: ClickHouseClient;

  beforeAll(async () => {
    store = await openTestClickhouse();
    access = openSqlAccess(store.config, true);
    const app = new Elysia().use(clickhouseRoutes(access, PASSWORD)).compile();
    server = Bun.serve({ port: 0, fetch: (request) => app.handle(request) });
    client = createClient({ url: String(server.url), username: SQL_USER, password: PASSWORD });
  });
  afterAll(async () => {
    await client?.close();
    await server?.stop(true);
    await access?.close();
    await store?.end();
  });

  const namesOf = async (query: string) => {
    const answer = await client.query({ query, format: "JSONEachRow" });
    return (await answer.json<{ name: string }>()).map(({ name }) => name);
  };
  const post = (body: string, headers: Record<string, string> = {}, query = "") =>
    fetch(`${server.url}${query}`, { method: "POST", body, headers });
  const key = { "x-clickhouse-user": SQL_USER, "x-clickhouse-key": PASSWORD };

  test("a driver finds the tables with their comments, and reads them in the format it names", async () => {
    expect((await namesOf("SELECT name FROM system.tables ORDER BY name")).sort()).toEqual(
      [...ASKABLE].sort(),
    );
    const comment = await client.query({
      query: "SELECT comment FROM system.columns WHERE table = 'lanes' AND name = 'lead_p90_days'",
      format: "TabSeparated",
    });
    expect(await comment.text()).toBe("90th percentile of the lead, calendar days\n");
    const { headers } = await post("SELECT version() AS v FORMAT Native", key);
    expect(headers.get("x-clickhouse-format")).toBe("Native");
    const typed = await post("SELECT dest_cap FROM lanes LIMIT 0", {
      ...key,
      "x-clickhouse-format": "TabSeparatedWithNamesAndTypes",
    });
    expect(await typed.text()).toBe("dest_cap\nString\n");
    const asked = `?query=${encodeURIComponent("SELECT 1 AS one")}&user=${SQL_USER}&password=${PASSWORD}`;
    expect(await (await fetch(`${server.url}${asked}`)).text()).toBe("1\n");
  });

  test.each(CATALOGUE_ATTACKS)("shows no table but ours: %s", async (statement) => {
    const shown = await namesOf(statement).catch((error: { type?: string }) => {
      expect(error.type).toBeDefined();
      return [];
    });
    expect(shown.filter((name) => !ASKABLE.includes(name))).toEqual([]);
  });

  test.each(REFUSED)("refuses %s", async (statement) => {
    const answer = await post(statement, key);
    expect([400, 403]).toContain(answer.status);
    expect(await answer.text()).toMatch(/^Code: \d+[.] DB::Exception: [\s\S]+ [(][A-Z_]+[)]\n$/);
  });

  test("a setting of the request has no effect", async () => {
    const query = "?readonly=0&additional_table_filters=%7B%7D&max_execution_time=999";
    const answer = await post(
      "SELECT value FROM system.settings WHERE name = 'readonly'",
      key,
      query,
    );
    expect(await answer.text()).toBe("1\n");
    const tables = await post("SELECT count() FROM system.tables", key, query);
    expect(await tables.text()).toBe(`${ASKABLE.length}\n`);
  });

  test("nobody without the password is answered, and every refusal is the same", async () => {
    const answers = await Promise.all(
      [{}, { ...key, "x-clickhouse-key": "x" }, { ...key, "x-clickhouse-user": "default" }].map(
        async (headers) => {
          const answer = await post("SELECT 1", headers);
          return [answer.status, await answer.text()];
        },
      ),
    );
    expect(new Set(answers.map(String)).size).toBe(1);
    expect(answers[0]).toMatchObject([403, expect.stringContaining("AUTHENTICATION_FAILED")]);
  });

  test("a statement is as long as in the panel", async () => {
    const longest = "SELECT 1".padEnd(STATEMENT_CHARACTERS, " ");
    expect((await post(longest, key)).status).toBe(200);
    expect((await post(`${longest} `, key)).status).toBe(403);
  });
});

test("the port needs a password and the embedded engine; a server has a user for it", () => {
  expect(() => readConfig({ SQL_PORT: "8123" })).toThrow("SQL_PASSWORD");
  const server = { CLICKHOUSE_URL: "http://127.0.0.1:8123/waybill" };
  const settings = { SQL_PORT: "8123", SQL_PASSWORD: PASSWORD };
  expect(readConfig(settings).ports.sql).toBe(8123);
  expect(() => readConfig({ ...settings, ...server })).toThrow("SQL_PORT, CLICKHOUSE_URL");
  expect(readConfig({}).ports.sql).toBeNull();
});

test("deploy/dbt/sources.yml is what `npm run tool -- dbt-sources` makes of the comments", async () => {
  expect(await Bun.file(SOURCES_PAGE).text()).toBe(dbtSources());
});
