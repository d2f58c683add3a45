/** The product in this process with its analytics, and an operator who asks it SQL. */
import { startAnalytics } from "#analytics/main.ts";
import { readLags } from "#core/platform/log/streams.ts";
import type { Running, StartRole } from "#core/runtime/runtime.ts";
import type { SetupFile } from "#core/setup/rules/setup.ts";
import { startIngest } from "#ingest/main.ts";
import { startPanel } from "#panel/main.ts";
import { startProcessors } from "#processors/main.ts";
import { type Answer, request } from "#test/support/clients/merchant.ts";
import { eventually } from "#test/support/eventually.ts";
import { type ClickhouseKind, startTestClickhouse } from "#test/support/servers/servers.ts";
import { openTestRuntime, type TestRuntime } from "./runtime.ts";

export interface TestAnalytics {
  readonly runtime: TestRuntime;
  readonly ingest: string;
  readonly panel: string;
  readonly call: (method: string, path: string, body?: unknown) => Promise<Answer>;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever was selected
  readonly sql: (query: string) => Promise<any[]>;
  /** Waits until everything that was pushed is in ClickHouse. */
  readonly settled: () => Promise<void>;
  readonly end: () => Promise<void>;
}

export async function openTestAnalytics(
  setup: SetupFile,
  kind: ClickhouseKind = "embedded",
  env: Readonly<Record<string, string>> = {},
): Promise<TestAnalytics> {
  const clickhouse = await startTestClickhouse(kind);
  const runtime = await openTestRuntime(setup, {
    CLICKHOUSE_URL: clickhouse.address ?? "",
    CLICKHOUSE_READ_URL: clickhouse.readAddress ?? "",
    ...env,
  });
  const roles: Running[] = [];
  const starts: StartRole[] = [startAnalytics, startProcessors, startPanel, startIngest];
  for (const start of starts) roles.push(await start(runtime, roles));
  const urlOf = (role: string) => roles.find(({ name }) => name === role)?.url ?? "";
  const headers = { authorization: `Bearer ${runtime.secrets.panelToken}` };
  const call = (method: string, path: string, body?: unknown) =>
    request(method, `${urlOf("panel")}${path}`, body, headers);

  return {
    runtime,
    ingest: urlOf("ingest"),
    panel: urlOf("panel"),
    call,
    async sql(query) {
      const { status, body } = await call("POST", "/panel/api/sql", { query });
      if (status !== 200) throw new Error(`${status} ${body?.detail}`);
      return body.data;
    },
    async settled() {
      await eventually(async () => {
        const lags = await readLags(runtime.redis);
        const groups = lags.filter(({ group }) => ["track", "analytics"].includes(group));
        return groups.every(({ entries }) => entries === 0);
      }, "everything is in ClickHouse");
    },
    async end() {
      for (const { stop } of roles.reverse()) await stop();
      await runtime.end();
      await clickhouse.stop();
    },
  };
}
