/** The dashboard for the data team: every question in it is answered by the SQL door. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openSqlDoor, type SqlDoor } from "#analytics/sql-door.ts";
import dashboard from "#deploy/grafana/couriers.json" with { type: "json" };
import { openTestClickhouse, type TestClickhouse } from "#test/support/clickhouse.ts";

let store: TestClickhouse;
let door: SqlDoor;

beforeAll(async () => {
  store = await openTestClickhouse();
  door = openSqlDoor(store.config);
});

afterAll(async () => {
  await door?.close();
  await store?.end();
});

test.each(dashboard.panels.map(({ title, targets }) => [title, targets] as const))(
  "Grafana's panel %s asks what the views answer",
  async (_, targets) => {
    expect(targets.length).toBeGreaterThan(0);
    for (const { rawSql } of targets) {
      // What Grafana puts in place of its macro.
      const statement = rawSql.replaceAll("$__fromTime", "toDateTime(1700000000)");
      await (await door.ask(statement, "csv", "somebody")).toArray();
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
