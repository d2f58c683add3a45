/** The dashboard for the data team: every question in it is answered by SQL access. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openSqlAccess, type SqlAccess } from "#analytics/sql-access.ts";
import dashboard from "#deploy/grafana/couriers.json" with { type: "json" };
import { openTestClickhouse, type TestClickhouse } from "#test/support/servers/clickhouse.ts";

let store: TestClickhouse;
let access: SqlAccess;

beforeAll(async () => {
  store = await openTestClickhouse();
  access = openSqlAccess(store.config);
});

afterAll(async () => {
  await access?.close();
  await store?.end();
});

test.each(dashboard.panels.map(({ title, targets }) => [title, targets] as const))(
  "Grafana's panel %s asks what the views answer",
  async (_, targets) => {
    expect(targets.length).toBeGreaterThan(0);
    for (const { rawSql } of targets) {
      // What Grafana puts in place of its macro.
      const statement = rawSql.replaceAll("$__fromTime", "toDateTime(1700000000)");
      await (await access.ask(statement, "csv", "somebody")).toArray();
    }
  },
);

test("every panel says what it shows, and asks the data source that is chosen", () => {
  for (const { description, datasource, id } of dashboard.panels) {
    expect(description.length).toBeGreaterThan(20);
    expect(datasource.uid).toBe(`$\{${dashboard.templating.list[0]?.name}}`);
    expect(dashboard.panels.filter((one) => one.id === id)).toHaveLength(1);
  }
});
