/**
 * No request holds the event loop for more than 50 ms, whatever its body: each route of each port gets the largest bodies that it
 * takes. The routes are those of the apps, and the bodies are made from their published schemas, so one that is added is tried too.
 * Routes whose worst case needs data in the store are in `stalls.test.ts`.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AnyElysia } from "elysia";
import { openArchive } from "#analytics/archive.ts";
import { type Benchmarks, openBenchmarks } from "#analytics/benchmarks.ts";
import { type Insights, openInsights } from "#analytics/insights.ts";
import { createApiApp } from "#api/app.ts";
import { declarationOf } from "#core/platform/http/access.ts";
import { createIngestApp } from "#ingest/app.ts";
import { createPanelApp } from "#panel/server/app.ts";
import { PANEL_BODY_BYTES } from "#panel/server/http/read-json.ts";
import { openRequestSender, type RequestSender } from "#test/support/clients/request-sender.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { jsonBodies, type Schema, schemaOfBody } from "#test/support/data/worst-bodies.ts";
import { type LoopWatch, watchLoop } from "#test/support/loop-holds.ts";
import { item } from "#test/support/product/api.ts";
import { NO_CLICKHOUSE, openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

const HOLD_LIMIT_MS = 50;
/** A first one warms code up, and garbage may be collected in any of them. */
const TRIES = 5;
const READING = new Set(["GET", "HEAD"]);
/** The panel comes last: it deactivates channels and couriers. */
const PORTS = ["api", "ingest", "panel"] as const;
type Port = (typeof PORTS)[number];

const DOCUMENTS: Readonly<Record<Port, string>> = {
  panel: "/panel/api/openapi.json",
  api: "/v2/openapi.json",
  ingest: "/v1/openapi.json",
};
const SMALLEST_BODY_BYTES = 512;
/** Log-ins and the like, which answer 401 or 429 to what a stranger guesses. */
const PUBLIC_REFUSALS = new Set([
  ...["POST /panel/login", "POST /panel/api/session", "POST /panel/api/password-reset"],
  ...["POST /panel/api/invitations/:token", "GET /panel/api/invitations/:token"],
  ...["GET /panel/api/quality/:token", "POST /v2/auth/token", "POST /v1/oauth/token"],
]);
/** Names that stand for something in the store. */
const NAMES: Readonly<Record<string, string>> = {
  channelCode: "acme-it",
  code: "GLS_ITA",
  courierCode: "GLS_ITA",
  statusCode: "DLV",
};
/** Bytes of bodies that are larger than usual, where no declaration of the route tells. */
const BODY_BYTES: Readonly<Record<string, number>> = {
  "POST /v1/events": 4.9 * 1024 ** 2,
  "POST /v1/events/validate": 4.9 * 1024 ** 2,
};
/** Uploads that are no JSON: a new one is added here, after somebody has thought about its worst form. */
const FILES: Readonly<Record<string, (limit: number) => string[]>> = {
  "POST /panel/api/couriers/:code/comparison": (limit) =>
    csvFiles("trackingNumber,code,occurredAt", limit),
  "POST /panel/api/couriers/:code/catalogue/import": (limit) =>
    csvFiles("code,status,statusDetail,description", limit),
  "POST /v1/oauth/token": (limit) => ["a=%C3%A9&".repeat(limit / 9), "&".repeat(limit - 1)],
  "POST /panel/api/channels/:channelCode/orders": (limit) => [
    '{"source":"x"}\n'.repeat(limit / 16),
    `{${'"a":1,'.repeat(limit / 8)}"b":1}`,
  ],
};

function csvFiles(head: string, limit: number): string[] {
  const filled = (line: (at: number) => string) => {
    const count = Math.min(4_999, Math.floor(limit / line(1_000).length) - 1);
    return `${head}\n${Array.from({ length: count }, (_, at) => line(at)).join("\n")}`;
  };
  return [
    `${"code,".repeat(limit / 5 - 2)}code`,
    ",".repeat(limit - 1),
    "\n".repeat(limit - 1),
    `${head}\n"${'""'.repeat(limit / 2 - 100)}"`,
    filled((at) => `TN${at},DLV,2026-11-20T09:58:12+01:00,${",x".repeat(180)}`),
    filled((at) => `TN1,C${at},2026-11-20T09:${10 + (at % 50)}:12+01:00`),
    filled((at) => `C${at},DELIVERED,0,${"d".repeat(300)}`),
    filled(() => `,,${",".repeat(380)}`),
  ];
}

interface Route {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly pattern: string;
  /** The most that any body of it may have; the test finds a smaller limit by itself. */
  readonly bodyBytes: number;
}

let runtime: TestRuntime;
let benchmarks: Benchmarks;
let insights: Insights;
let apps: Readonly<Record<Port, AnyElysia>>;
let tokens: Readonly<Record<Port, string>>;
let sender: RequestSender;
let folder: string;
let watch: LoopWatch;
let shipmentId = "1";

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup(), {
    CLICKHOUSE_URL: NO_CLICKHOUSE,
    TRUSTED_PROXIES: "127.0.0.1",
  });
  benchmarks = await openBenchmarks(runtime.config);
  insights = openInsights(runtime.config);
  const archive = openArchive(runtime.config, runtime.secrets.vault);
  apps = {
    panel: createPanelApp(runtime, benchmarks, insights),
    api: createApiApp({ ...runtime, benchmarks, archive }),
    ingest: createIngestApp(runtime),
  };
  for (const app of Object.values(apps))
    app.listen({ port: 0, hostname: "127.0.0.1", maxRequestBodySize: 64 * 1024 ** 2 });
  const body = JSON.stringify({ apiKey: "key_acme_main" });
  const answer = await fetch(`${urlOf("api")}/v2/auth/token`, { method: "POST", body });
  const { token } = (await answer.json()) as { token: string };
  tokens = { panel: runtime.secrets.panelToken, api: token, ingest: "tok_gls_1" };
  const created = await fetch(`${urlOf("api")}/v2/shipments`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ shipments: [item("LOOP-1", {})] }),
  });
  shipmentId = /"id":\s*"?(\d+)/.exec(await created.text())?.[1] ?? "1";
  folder = await mkdtemp(join(tmpdir(), "waybill-loop-"));
  sender = openRequestSender();
  watch = watchLoop();
}, 60_000);

afterAll(async () => {
  watch?.stop();
  sender?.end();
  for (const app of Object.values(apps)) await app.stop(true);
  await Promise.all([benchmarks.close(), insights.close()]);
  await rm(folder, { recursive: true, force: true });
  await runtime.end();
});

function urlOf(port: Port): string {
  return `http://127.0.0.1:${apps[port].server?.port}`;
}

/** What removes or stops comes last: others need it. */
const isLast = ({ method, path }: Route) =>
  method === "DELETE" || /deactivate|disable|logout|personal-data/.test(path);

function routesOf(port: Port): Route[] {
  const ids = { ...NAMES, id: shipmentId };
  const routes = apps[port].routes
    .filter(({ method, path }) => method !== "WS" && !path.endsWith("/stream"))
    .map((route) => {
      const { method, path: pattern } = route;
      const name = `${method} ${pattern}`;
      const path = pattern
        .replace("*", "index.html")
        .replaceAll(/:(\w+)/g, (_, of: string) => ids[of as keyof typeof ids] ?? "1");
      const bodyBytes =
        declarationOf(route)?.body?.limitBytes ?? BODY_BYTES[name] ?? PANEL_BODY_BYTES;
      return { name, method, path, pattern, bodyBytes };
    });
  return [...routes.filter((route) => !isLast(route)), ...routes.filter(isLast)];
}

async function documentOf(port: Port): Promise<Schema> {
  const answer = await fetch(`${urlOf(port)}${DOCUMENTS[port]}`);
  return (await answer.json()) as Schema;
}

/** Null where the route takes something that nobody has thought about. */
function bodiesOf(
  route: Route,
  document: Schema,
): readonly ((bytes: number) => readonly string[])[] | null {
  if (READING.has(route.method)) return [() => [""]];
  const known = FILES[route.name];
  if (known) return [known];
  const { schema, isForeign } = schemaOfBody(document, route.method, route.pattern);
  return isForeign ? null : [(bytes) => jsonBodies(schema, document, bytes)];
}

interface Tried {
  readonly status: number;
  /** The least of several tries, milliseconds. */
  readonly heldMs: number;
}

let address = 0;

async function tried(port: Port, route: Route, body: string): Promise<Tried> {
  const path = join(folder, "body");
  await writeFile(path, body);
  const type = FILES[route.name] ? "text/csv" : "application/json";
  const query = READING.has(route.method) ? `?${"q=%C3%A9&".repeat(1_000)}limit=100` : "";
  let least = Number.POSITIVE_INFINITY;
  let status = 0;
  for (let tries = 0; tries < TRIES && least >= HOLD_LIMIT_MS; tries += 1) {
    address += 1;
    const from = `10.${(address >> 16) & 255}.${(address >> 8) & 255}.${address & 255}`;
    watch.longestMs();
    status = await sender.send({
      method: route.method,
      url: `${urlOf(port)}${route.path}${query}`,
      path,
      headers: {
        authorization: `Bearer ${tokens[port]}`,
        "content-type": type,
        "x-forwarded-for": from,
      },
    });
    least = Math.min(least, watch.longestMs());
  }
  return { status, heldMs: Math.round(least) };
}

/** The largest bodies of a kind that the route does not refuse by their size. */
async function largest(
  port: Port,
  route: Route,
  make: (bytes: number) => readonly string[],
): Promise<{ readonly body: string; readonly result: Tried }[]> {
  const found = new Map<number, { body: string; result: Tried }>();
  for (let bytes = route.bodyBytes; bytes >= SMALLEST_BODY_BYTES; bytes /= 2) {
    let isTooLarge = false;
    for (const [at, body] of make(bytes).entries()) {
      if (found.has(at)) continue;
      const result = await tried(port, route, body);
      if (result.status === 413) isTooLarge = true;
      else found.set(at, { body, result });
    }
    if (!isTooLarge) break;
  }
  return [...found.values()];
}

test.each([...PORTS])(
  "%s: no route holds the loop for more than 50 ms, whatever its body",
  async (port) => {
    const document = await documentOf(port);
    const faults: string[] = [];
    for (const route of routesOf(port)) {
      const makers = bodiesOf(route, document);
      if (makers === null) faults.push(`${route.name}: nobody has thought about its worst body`);
      for (const make of makers ?? []) {
        const results = await largest(port, route, make);
        if (results.length === 0) faults.push(`${route.name}: takes no body`);
        for (const { body, result } of results) {
          const { status, heldMs } = result;
          // Whoever is let in by nobody is not held up by anything either.
          const isRead = status < 500 ? ![0, 401, 429].includes(status) : status === 503;
          const isRight = isRead || PUBLIC_REFUSALS.has(route.name);
          if (isRight && heldMs < HOLD_LIMIT_MS) continue;
          faults.push(
            `${route.name}: ${status}, ${heldMs} ms, ${body.length} bytes ${body.slice(0, 60)}`,
          );
        }
      }
    }
    expect(faults).toEqual([]);
  },
  600_000,
);
