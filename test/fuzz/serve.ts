/** The three APIs in this process, and a merchant, a courier and an operator to call them as. */
import { openBenchmarks } from "#analytics/benchmarks.ts";
import { openInsights } from "#analytics/insights.ts";
import { startApi } from "#api/main.ts";
import type { SetupFile } from "#core/setup/rules/setup.ts";
import { startIngest } from "#ingest/main.ts";
import { createPanelApp } from "#panel/server/app.ts";
import { labelBody, labelSetup } from "#test/support/data/label-setup.ts";
import { NO_CLICKHOUSE, openTestRuntime } from "#test/support/product/runtime.ts";

const SANDBOX_ROWS = 500;

export interface Served {
  readonly api: string;
  readonly ingest: string;
  readonly panel: string;
  /** Access token of the merchant. */
  readonly token: string;
  readonly courierToken: string;
  readonly panelToken: string;
  /** What paths can name, by parameter: existing resources, so that cases reach beyond 404. */
  readonly known: Readonly<Record<string, readonly (string | number)[]>>;
  readonly stop: () => Promise<void>;
}

export async function serve(): Promise<Served> {
  const runtime = await openTestRuntime(fuzzSetup(), { CLICKHOUSE_URL: NO_CLICKHOUSE });
  const api = await startApi(runtime);
  const ingest = await startIngest(runtime);
  const url = api.url ?? "";
  const benchmarks = await openBenchmarks(runtime.config);
  const insights = openInsights(runtime.config);
  const panel = createPanelApp(runtime, benchmarks, insights).listen({
    port: 0,
    hostname: "127.0.0.1",
  });

  async function call(path: string, body: unknown, token = "") {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const answer = await fetch(`${url}${path}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
    });
    // biome-ignore lint/suspicious/noExplicitAny: a test looks into whatever was answered
    return (await answer.json()) as any;
  }

  const { token } = await call("/v2/auth/token", { apiKey: "key_acme_main" });
  const shipments = Array.from({ length: 20 }, (_, at) => ({
    trackingNumber: `FUZZ${at}`,
    courier: "GLS_ITA",
    shipDate: "2026-11-20",
    orderReference: `R${at}`,
    consignee: { email: "rossi@example.test" },
  }));
  const created = await call("/v2/shipments", { shipments }, token);
  const order = { orderReference: "1", orderOrigin: "shopify" };
  const parcels = Array.from({ length: 50 }, () => ({ weightKg: 1 }));
  const hashes = await call("/v2/parcels", { ...order, parcels }, token);
  const job = await call("/v2/shipments/import", { shipments }, token);
  await call("/v2/labels", labelBody(), token);
  return {
    api: url,
    ingest: ingest.url ?? "",
    panel: `http://127.0.0.1:${panel.server?.port}`,
    token,
    courierToken: "tok_gls_1",
    panelToken: runtime.secrets.panelToken,
    known: {
      "/v2/shipments/{id}": created.items.map(({ id }: { id: number }) => id),
      "/v2/sandbox/{id}": Array.from({ length: SANDBOX_ROWS }, (_, at) => at + 1),
      "/v2/parcels/{hash}": hashes.map(({ hash }: { hash: string }) => hash),
      "/v2/jobs/{jobId}": [job.jobId],
    },
    async stop() {
      await api.stop();
      await ingest.stop();
      await panel.stop(true);
      await Promise.all([benchmarks.close(), insights.close()]);
      await runtime.end();
    },
  };
}

function fuzzSetup(): SetupFile {
  const setup = labelSetup();
  const [acme] = setup.companies ?? [];
  const [channel] = acme?.channels ?? [];
  Object.assign(acme ?? {}, { products: ["api-parcels", "checkAddress"] });
  Object.assign(channel ?? {}, {
    addressCheck: true,
    rateLimit: { bucketSize: 1_000_000, refillRate: 1_000_000 },
    sandbox: Array.from({ length: SANDBOX_ROWS }, (_, at) => ({ id: at + 1, stringValue: "a" })),
  });
  const [gls] = setup.couriers ?? [];
  Object.assign(gls ?? {}, { rateLimit: { perSecond: 100_000, burst: 100_000 } });
  return setup;
}
