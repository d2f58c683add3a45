/** Every answer of every port tells the id of its request; so do error bodies and log lines (document 1, "Errors"). */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { AnyElysia } from "elysia";
import { type Benchmarks, openBenchmarks } from "#analytics/benchmarks.ts";
import { createApiApp } from "#api/app.ts";
import { REQUEST_ID_LENGTH } from "#core/platform/http/request-ids.ts";
import { createLog } from "#core/platform/process/log.ts";
import {
  companyKeys,
  companyPartition,
  courierRateKey,
  REMAP_KEYS,
} from "#core/platform/redis/keys.ts";
import { openOpsPort } from "#core/runtime/ops-port.ts";
import { NO_ARCHIVE } from "#core/search/store/archive-search.ts";
import { createIngestApp } from "#ingest/app.ts";
import { createPanelApp } from "#panel/server/app.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { NO_CLICKHOUSE, openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

const PORTS = ["api", "ingest", "panel"] as const;
type Port = (typeof PORTS)[number];

const LONGEST = "a".repeat(REQUEST_ID_LENGTH);
const MADE = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const JOB_ID = "7d0f9a52-8a0f-4f0e-9a36-0d6f6f4c0b11";

let runtime: TestRuntime;
let benchmarks: Benchmarks;
let apps: Readonly<Record<Port, AnyElysia>>;
let merchant: string;
const lines: Array<{ readonly requestId?: string; readonly msg: string }> = [];

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup(), {
    CLICKHOUSE_URL: NO_CLICKHOUSE,
  });
  benchmarks = await openBenchmarks(runtime.config);
  const log = createLog("info", { write: (line) => void lines.push(JSON.parse(line)) });
  apps = {
    api: createApiApp({ ...runtime, log, benchmarks, archive: NO_ARCHIVE }),
    ingest: createIngestApp({ ...runtime, log }),
    panel: createPanelApp({ ...runtime, log }, benchmarks),
  };
  for (const app of Object.values(apps)) app.listen({ port: 0, hostname: "127.0.0.1" });
  const { body } = await ask("api", "POST", "/v2/auth/token", {
    body: JSON.stringify({ apiKey: "key_acme_main" }),
  });
  merchant = String(body?.["token"]);
});
afterAll(async () => {
  for (const app of Object.values(apps)) await app.stop(true);
  await benchmarks.close();
  await runtime.end();
});

async function ask(port: Port, method: string, path: string, init: RequestInit = {}) {
  const url = `http://127.0.0.1:${apps[port].server?.port}${path}`;
  const response = await fetch(url, { method, ...init });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.includes("json");
  const body = isJson ? (JSON.parse(text) as Record<string, unknown>) : null;
  return { status: response.status, id: response.headers.get("x-request-id"), body };
}

const bearer = (port: Port): string => {
  const tokens = { api: merchant, ingest: "tok_gls_1", panel: runtime.secrets.panelToken };
  return `Bearer ${tokens[port]}`;
};

/** A call that is answered, one without credentials, and one that works on a key which has the wrong type. */
const CALLS = {
  api: ["/v2/shipments", `/v2/jobs/${JOB_ID}`],
  ingest: ["/v1/ping", "/v1/ping"],
  panel: ["/panel/api/couriers", "/panel/api/couriers/GLS_ITA/remaps"],
} as const;

async function breakKey(port: Port): Promise<void> {
  const company = [...runtime.live.configuration().companies.values()][0]?.id ?? 0;
  const keys = {
    api: companyKeys(companyPartition(company)).job(JOB_ID),
    ingest: courierRateKey("GLS_ITA"),
    panel: REMAP_KEYS.ofCourier("GLS_ITA"),
  };
  await runtime.redis.set(keys[port], "neither a hash nor a list");
}

describe.each([...PORTS])("%s", (port) => {
  const [known, broken] = CALLS[port];

  test("200, 401, 404 and 400 answer with the id that the caller gives, in header and error body", async () => {
    const headers = { "x-request-id": "caller.Id_1-2", authorization: bearer(port) };
    const answered = await ask(port, "GET", known, { headers });
    expect([answered.status, answered.id]).toEqual([200, "caller.Id_1-2"]);
    const { authorization: _, ...unknown } = headers;
    const refused = [
      await ask(port, "GET", known, { headers: unknown }),
      await ask(port, "GET", `${known}/no/such/path`, { headers }),
      await ask(port, "GET", `${known}?x=%ff`, { headers }),
    ];
    expect(refused.map(({ status }) => status)).toEqual([401, 404, 400]);
    for (const { id, body } of refused) {
      expect([id, body?.["requestId"]]).toEqual(["caller.Id_1-2", "caller.Id_1-2"]);
    }
  });

  test("an id is made for a request without one, with one character too many, or with others", async () => {
    const ids: string[] = [];
    for (const given of [null, `${LONGEST}a`, "", "a b", "a@b", "a,b", 'a"b', "é"]) {
      const headers = given === null ? {} : { "x-request-id": given };
      const { id, body } = await ask(port, "GET", "/no/such/path", { headers });
      expect(id).toMatch(MADE);
      expect(body?.["requestId"]).toBe(id);
      ids.push(id ?? "");
    }
    expect(new Set(ids).size).toBe(ids.length);
    const longest = await ask(port, "GET", "/healthz", { headers: { "x-request-id": LONGEST } });
    expect([longest.status, longest.id]).toEqual([200, LONGEST]);
  });

  test("500: the line in the log and the answer have the same id", async () => {
    await breakKey(port);
    const headers = { "x-request-id": `broken-${port}`, authorization: bearer(port) };
    const { status, id, body } = await ask(port, "GET", broken, { headers });
    expect([status, id]).toEqual([500, `broken-${port}`]);
    expect(body).toMatchObject({ code: "INTERNAL_ERROR", requestId: `broken-${port}` });
    const logged = lines.filter(({ requestId }) => requestId === `broken-${port}`);
    expect(logged.map(({ msg }) => msg)).toEqual(["unexpected error"]);
  });
});

test("lines of requests that run at the same time have the ids of their own requests", async () => {
  const ids = Array.from({ length: 20 }, (_, at) => `together-${at}`);
  const before = lines.length;
  const event = (id: string) => ({
    eventId: id,
    trackingNumber: "NONE",
    occurredAt: "2026-11-20T10:00:00+01:00",
    status: { code: "OUT", description: "x" },
  });
  await Promise.all(
    ids.map((id) =>
      ask("ingest", "POST", "/v1/events", {
        headers: {
          "x-request-id": id,
          authorization: "Bearer tok_brt_1",
          "content-type": "application/json",
        },
        body: JSON.stringify({
          schemaVersion: "1.0",
          messageId: id,
          sentAt: "2026-11-20T10:00:00+01:00",
          courier: "BRT_ITA",
          events: [event(id)],
        }),
      }),
    ),
  );
  const processed = lines.slice(before).filter(({ msg }) => msg === "message processed");
  const pairs = processed.map((line) => [
    (line as unknown as { readonly messageId: string }).messageId,
    line.requestId,
  ]);
  expect(pairs.sort()).toEqual(ids.map((id) => [id, id]).sort());
});

test("the port of health and metrics answers with ids too", async () => {
  const port = openOpsPort(runtime, "track", 0);
  for (const [path, status] of [
    ["/healthz", 200],
    ["/none", 404],
  ] as const) {
    const answer = await fetch(`${port.url}${path}`, { headers: { "x-request-id": "probe" } });
    expect([answer.status, answer.headers.get("x-request-id")]).toEqual([status, "probe"]);
  }
  await port.stop();
});

test("a line that belongs to no request has no id", () => {
  const found: object[] = [];
  createLog("info", { write: (line) => void found.push(JSON.parse(line)) }).info("alone");
  expect(found[0]).not.toHaveProperty("requestId");
});
