/**
 * Every route of every port, asked without credentials and with somebody else's, under Hosts and paths that parts of a
 * server read differently. The routes are those of the apps: one that is added later is asked too.
 */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type AnyElysia, Elysia } from "elysia";
import { pino } from "pino";
import { openArchive } from "#analytics/archive.ts";
import { type Benchmarks, openBenchmarks } from "#analytics/benchmarks.ts";
import { type Insights, openInsights } from "#analytics/insights.ts";
import { createApiApp } from "#api/app.ts";
import { type Claims, createTokens, TOKEN_LIFE_SECONDS } from "#api/auth/tokens.ts";
import { everyRouteDeclared, guardOf } from "#core/platform/http/access.ts";
import { createIngestApp } from "#ingest/app.ts";
import { createPanelApp } from "#panel/server/app.ts";
import { PAGE_PATHS } from "#panel/web/paths.ts";
import { event } from "#test/support/clients/courier.ts";
import {
  openRawConnection,
  type RawAnswer,
  type RawConnection,
  rawRequest,
} from "#test/support/clients/raw-http.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { startMeasuring } from "#test/support/measured.ts";
import { item } from "#test/support/product/api.ts";
import { NO_CLICKHOUSE, openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

const PORTS = ["panel", "api", "ingest"] as const;
type Port = (typeof PORTS)[number];

/** What anybody may call. A new public route is added here by hand, after somebody has thought about it. */
const PUBLIC: Readonly<Record<Port, readonly string[]>> = {
  panel: [
    "GET /healthz",
    "GET /readyz",
    "GET /metrics",
    "GET /.well-known/security.txt",
    "GET /ips.txt",
    "GET /webhooks/payload.schema.json",
    "GET /webhooks/asyncapi.json",
    "GET /webhooks/docs",
    "GET /webhooks/vector.json",
    // What describes the API holds no secret, and is the same everywhere.
    "GET /panel/api/openapi.json",
    "GET /panel/docs",
    "GET /panel/docs/swagger-ui.js",
    "GET /panel/docs/swagger-ui.css",
    "GET /panel/docs/reference.js",
    "GET /panel/docs/reference.css",
    "GET /panel/errors",
    "GET /panel/errors.json",
    "GET /panel/style.css",
    // The application's shell and files hold no data.
    ...PAGE_PATHS.map((path) => `GET ${path}`),
    "GET /assets/:file",
    "GET /panel/explorer",
    "GET /panel/webhooks/:id",
    // The documents are the same everywhere.
    "GET /docs",
    "GET /docs/search",
    "GET /docs/*",
    // Where callers show who they are.
    "GET /panel/login",
    "POST /panel/login",
    "POST /panel/logout",
    "POST /panel/api/session",
    "DELETE /panel/api/session",
    "POST /panel/api/password-reset",
    // Behind addresses that cannot be guessed, for those without an account yet.
    "GET /panel/api/invitations/:token",
    "POST /panel/api/invitations/:token",
    "GET /panel/api/quality/:token",
    // Behind addresses that cannot be guessed.
    "GET /slips/:token",
    "GET /t/:token",
  ],
  api: [
    "GET /healthz",
    "GET /readyz",
    "GET /metrics",
    "GET /",
    "GET /v2/docs",
    "GET /v2/docs/swagger-ui.js",
    "GET /v2/docs/swagger-ui.css",
    "GET /v2/docs/reference.js",
    "GET /v2/docs/reference.css",
    "GET /v2/openapi.json",
    "GET /v2/errors",
    "GET /v2/errors.json",
    "GET /v2/clients/",
    "GET /v2/clients/:file",
    "GET /v2/examples/merchant.ts",
    "GET /v2/examples/merchant.py",
    "POST /v2/auth/token",
  ],
  ingest: [
    "GET /healthz",
    "GET /readyz",
    "GET /metrics",
    "GET /",
    "GET /v1/calls",
    "GET /v1/calls/swagger-ui.js",
    "GET /v1/calls/swagger-ui.css",
    "GET /v1/calls/reference.js",
    "GET /v1/calls/reference.css",
    "GET /v1/openapi.json",
    "GET /v1/errors",
    "GET /v1/errors.json",
    "GET /v1/docs",
    "GET /v1/guide",
    "GET /v1/vectors.json",
    "GET /v1/examples/courier.ts",
    "GET /v1/examples/courier.py",
    "GET /v1/doctor.mjs",
    "POST /v1/oauth/token",
  ],
};

/** Names that stand for something in the store, so that nothing is refused because it does not exist. */
const NAMES: Readonly<Record<string, string>> = {
  channelCode: "acme-it",
  code: "GLS_ITA",
  statusCode: "DLV",
};

interface Route {
  readonly method: string;
  /** With names and ids in the place of its parameters. */
  readonly path: string;
  /** As the app has it. */
  readonly pattern: string;
}

interface Served {
  readonly url: string;
  readonly routes: readonly Route[];
  readonly guarded: readonly Route[];
}

let runtime: TestRuntime;
/** Lines of the log, warnings and worse. */
const logged: string[] = [];
let benchmarks: Benchmarks;
let insights: Insights;
let apps: Readonly<Record<Port, AnyElysia>>;
let served: Readonly<Record<Port, Served>>;
let shipmentId: string;
let acme: string;
let beta: string;
let loggedOut: string;
let session: string;
/** Tokens that were good, by the port that took them, and how they ended. */
let ended: Readonly<Record<Port, Readonly<Record<"expired" | "revoked", string>>>>;

beforeAll(async () => {
  const setup = testSetup();
  const [company] = setup.companies ?? [];
  if (company) company.products = ["api-parcels", "checkAddress"];
  runtime = await openTestRuntime(setup, {
    CLICKHOUSE_URL: NO_CLICKHOUSE,
    // Each request comes from an address of its own, so that no limit by address refuses it first.
    TRUSTED_PROXIES: "127.0.0.1",
  });
  benchmarks = await openBenchmarks(runtime.config);
  insights = openInsights(runtime.config);
  const archive = openArchive(runtime.config, runtime.secrets.vault);
  const log = pino({ level: "warn" }, { write: (line) => void logged.push(line) });
  apps = {
    panel: createPanelApp({ ...runtime, log }, benchmarks, insights),
    api: createApiApp({ ...runtime, log, benchmarks, archive }),
    ingest: createIngestApp({ ...runtime, log }),
  };
  for (const app of Object.values(apps)) app.listen({ port: 0, hostname: "127.0.0.1" });
  acme = await merchantToken("key_acme_main");
  beta = await merchantToken("key_beta_main");
  shipmentId = await createShipment();
  session = await logIn();
  loggedOut = await logIn();
  const headers = { cookie: loggedOut };
  await fetch(`${urlOf("panel")}/panel/api/session`, { method: "DELETE", headers });
  ended = await endedTokens();
  served = { panel: serve("panel"), api: serve("api"), ingest: serve("ingest") };
});

afterAll(async () => {
  for (const app of Object.values(apps)) await app.stop(true);
  await Promise.all([benchmarks.close(), insights.close()]);
  await runtime.end();
});

function urlOf(port: Port): string {
  return `http://127.0.0.1:${apps[port].server?.port}`;
}

function serve(port: Port): Served {
  const ids = { ...NAMES, id: shipmentId };
  const routes = apps[port].routes.map(({ method, path }) => ({
    method,
    pattern: path,
    path: path.replaceAll(/:(\w+)/g, (_, name: string) => ids[name as keyof typeof ids] ?? "1"),
  }));
  const guarded = routes.filter(
    ({ method, pattern }) => !PUBLIC[port].includes(`${method} ${pattern}`),
  );
  const heads = guarded
    .filter(({ method }) => method === "GET")
    .map((route) => ({ ...route, method: "HEAD" }));
  return { url: urlOf(port), routes, guarded: [...guarded, ...heads] };
}

async function merchantToken(apiKey: string): Promise<string> {
  const answer = await fetch(`${urlOf("api")}/v2/auth/token`, {
    method: "POST",
    body: JSON.stringify({ apiKey }),
    headers: { "content-type": "application/json" },
  });
  return ((await answer.json()) as { token: string }).token;
}

async function createShipment(): Promise<string> {
  const answer = await fetch(`${urlOf("api")}/v2/shipments`, {
    method: "POST",
    body: JSON.stringify({ shipments: [item("WALK-1")] }),
    headers: { "content-type": "application/json", authorization: `Bearer ${acme}` },
  });
  const text = await answer.text();
  const id = /"id": ?(\d+)/.exec(text)?.[1];
  if (id === undefined) throw new Error(`no shipment was created: ${text}`);
  return id;
}

async function logIn(): Promise<string> {
  const answer = await fetch(`${urlOf("panel")}/panel/api/session`, {
    method: "POST",
    body: JSON.stringify({ token: runtime.secrets.panelToken }),
    headers: { "content-type": "application/json" },
  });
  return answer.headers.get("set-cookie")?.split(";")[0] ?? "";
}

/** A token of the first company, but for these claims. */
function mint(changed: Partial<Claims>, nowMs: number): Promise<string> {
  const claims = JSON.parse(atob(acme.split(".")[1] ?? "")) as Claims;
  const { keyId, channelId, companyId, scopes } = { ...claims, ...changed };
  const tokens = createTokens(runtime.secrets.jwtSecret);
  return tokens.mint({ keyId, channelId, companyId, scopes }, nowMs);
}

async function endedTokens(): Promise<typeof ended> {
  const expired = await mint({}, runtime.live.now() - TOKEN_LIFE_SECONDS * 1_000);
  const key = await asOperator("POST", "/panel/api/channels/acme-it/api-keys");
  const courierToken = await asOperator("POST", "/panel/api/couriers/GLS_ITA/tokens");
  const revoked = await merchantToken(key["key"] ?? "");
  await asOperator("DELETE", `/panel/api/api-keys/${key["id"]}`);
  await asOperator("DELETE", `/panel/api/couriers/GLS_ITA/tokens/${courierToken["id"]}`);
  return {
    panel: { expired, revoked: loggedOut },
    api: { expired, revoked },
    ingest: { expired, revoked: courierToken["token"] ?? "" },
  };
}

async function asOperator(method: string, path: string): Promise<Record<string, string>> {
  const headers = { authorization: `Bearer ${runtime.secrets.panelToken}` };
  const answer = await fetch(`${urlOf("panel")}${path}`, { method, headers });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer.status === 204 ? {} : ((await answer.json()) as Record<string, string>);
}

let addresses = 0;

/** A header of an address that has not called yet. */
function fromNewAddress(): string {
  addresses += 1;
  return `X-Forwarded-For: 10.${addresses >> 16}.${(addresses >> 8) & 255}.${addresses & 255}`;
}

/** Neither is read before the caller is known: each would be refused in a way of its own. */
const BAD_QUERY = "?limit=1&limit=x&from=%c3%bf&cursor=%00&preview=true";
const BAD_BODY = "{";

interface Attempt {
  readonly route: Route;
  readonly host?: readonly string[];
  readonly target?: string;
  readonly credentials?: readonly string[];
  readonly version?: string;
}

const CONNECTIONS = 16;
const READING = new Set(["GET", "HEAD"]);

/** Requests of this file, and those answered by a 5xx; 503 says that there is no ClickHouse here. */
let asked = 0;
let failed = 0;
const measuring = startMeasuring(
  "Nobody in",
  "every route, with wrong credentials, hosts and paths",
);

/** @returns what was answered against the expectation, one line each */
async function faultsOf(
  port: Port,
  attempts: readonly Attempt[],
  isRight: (answer: RawAnswer, attempt: Attempt) => boolean,
): Promise<string[]> {
  const faults: string[] = [];
  const waiting = attempts.values();
  async function work(connection: RawConnection): Promise<void> {
    for (const attempt of waiting) {
      const text = textOf(attempt);
      const answer = await connection.ask(text);
      asked += 1;
      if (answer.status >= 500 && answer.status !== 503) failed += 1;
      if (!isRight(answer, attempt)) {
        faults.push(`${JSON.stringify(text)} -> ${answer.status} ${answer.body.slice(0, 200)}`);
      }
    }
    connection.close();
  }
  const connections = Array.from({ length: CONNECTIONS }, () =>
    openRawConnection(served[port].url),
  );
  await Promise.all(connections.map(work));
  return faults;
}

function textOf({ route, host, target, credentials, version = "1.1" }: Attempt): string {
  const { method, path } = route;
  const hasBody = !READING.has(method);
  const headers = [
    ...(host ?? ["Host: localhost"]),
    ...(credentials ?? []),
    fromNewAddress(),
    ...(hasBody ? ["Content-Type: application/json"] : []),
  ];
  const body = hasBody ? BAD_BODY : "";
  return rawRequest(method, target ?? `${path}${BAD_QUERY}`, headers, { body, version });
}

const leadsToLogin = ({ status, headers }: RawAnswer) =>
  status === 303 && /^\/panel\/login(?:\?next=[^&]*)?$/.test(headers.get("location") ?? "");

/** Who may not call is reported so, and nothing of what else may be wrong. */
const isRefused = (answer: RawAnswer) => leadsToLogin(answer) || answer.status === 401;

/** Where the path or Host is damaged it may also be one that does not exist. */
const isTurnedAway = (answer: RawAnswer) =>
  isRefused(answer) || [400, 404, 405].includes(answer.status);

describe("the table of routes", () => {
  test("a route that does not say who may call it keeps its app from being made", () => {
    const app = new Elysia().get("/new", () => "secret");
    expect(() => everyRouteDeclared(app)).toThrow("GET /new");
  });

  test("the public routes of each port are those that this file names", () => {
    for (const port of PORTS) {
      const open = apps[port].routes.filter((route) => guardOf(route)?.access === "public");
      const names = open.map(({ method, path }) => `${method} ${path}`);
      expect(names.sort()).toEqual([...PUBLIC[port]].sort());
    }
  });

  test("entitled callers are let in: the routes refused to others exist", async () => {
    const rightful = {
      panel: `Authorization: Bearer ${runtime.secrets.panelToken}`,
      api: `Authorization: Bearer ${acme}`,
      ingest: "Authorization: Bearer tok_gls_1",
    };
    for (const port of PORTS) {
      // A stream never ends: `panel-overview.test.ts` lets its callers in.
      const reading = served[port].guarded.filter(
        ({ method, pattern }) => method === "GET" && !pattern.endsWith("/stream"),
      );
      const attempts = reading.map((route) => ({ route, credentials: [rightful[port]] }));
      const isLetIn = (answer: RawAnswer) =>
        !isRefused(answer) && answer.status !== 500 && !/"NOT_FOUND"/.test(answer.body);
      expect(await faultsOf(port, attempts, isLetIn)).toEqual([]);
      expect(reading.length).toBeGreaterThan(0);
    }
    const attempts = [{ route: firstGuarded("panel"), credentials: [`Cookie: ${session}`] }];
    expect(await faultsOf("panel", attempts, ({ status }) => status === 200)).toEqual([]);
  });
});

describe("what a browser may do with an answer", () => {
  const runs = /^(?:text\/html|image\/svg|application\/xhtml|text\/xml|application\/xml)/;
  const isScript = /^(?:text|application)\/javascript/;

  test.each([...PORTS])(
    "%s: a page runs no foreign script and stands in no foreign frame, and nothing is taken for a page",
    async (port) => {
      const rightful = { panel: runtime.secrets.panelToken, api: acme, ingest: "tok_gls_1" }[port];
      const credentials = [`Authorization: Bearer ${rightful}`];
      const reading = served[port].routes.filter(
        ({ method, pattern }) => method === "GET" && !pattern.endsWith("/stream"),
      );
      const target = (path: string) => path.replace("*", "index.html");
      const attempts = reading.flatMap((route) =>
        [credentials, []].map((own) => ({
          route,
          credentials: own,
          target: target(route.path),
        })),
      );
      const isSafe = ({ headers, status, body }: RawAnswer) => {
        const type = headers.get("content-type") ?? "";
        if (type === "") return body === "" || (status >= 300 && status < 400);
        const sniffed = headers.get("x-content-type-options") !== "nosniff";
        const policy = headers.get("content-security-policy") ?? "";
        const isClosed = policy.includes("frame-ancestors 'none'") && !policy.includes("*");
        if (runs.test(type)) return !sniffed && isClosed && !/script-src[^;]*unsafe/.test(policy);
        return isScript.test(type) ? !sniffed : /^[a-z]+\/[a-z0-9.+-]+/.test(type);
      };
      expect(await faultsOf(port, attempts, isSafe)).toEqual([]);
      expect(attempts.length).toBeGreaterThan(0);
    },
  );
});

function firstGuarded(port: Port): Route {
  const [route] = served[port].guarded;
  if (!route) throw new Error(`${port} has no guarded route`);
  return route;
}

/** Credentials that are good somewhere else, or were good once. */
function othersCredentials(port: Port): string[][] {
  const { panelToken, jwtSecret } = runtime.secrets;
  const bearer = (token: string) => [`Authorization: Bearer ${token}`];
  const own = { panel: [panelToken], api: [acme, beta], ingest: ["tok_gls_1", "tok_brt_1"] };
  const tokens = Object.entries(own).flatMap(([name, ofPort]) => (name === port ? [] : ofPort));
  return [
    [],
    ...tokens.map(bearer),
    ...["", "x", "key_acme_main", jwtSecret, `${acme.slice(0, -20)}${"x".repeat(20)}`].map(bearer),
    [`Authorization: ${panelToken}`],
    [`Authorization: Basic ${btoa(`operator:${panelToken}`)}`],
    ["Authorization: Bearer x", `Cookie: ${session}`],
    [`Cookie: ${loggedOut}`],
    [`Cookie: waybill_session=${panelToken}; __Host-${session}`],
    ...(port === "panel" ? [] : [[`Cookie: ${session}`]]),
  ];
}

describe("who may not call", () => {
  test.each([...PORTS])(
    "%s: without credentials, and with those of somebody else, nothing but a refusal",
    async (port) => {
      const attempts = served[port].guarded.flatMap((route) =>
        othersCredentials(port).map((credentials) => ({ route, credentials })),
      );
      expect(await faultsOf(port, attempts, isRefused)).toEqual([]);
    },
  );

  test.each(PORTS.flatMap((port) => [[port, "expired"] as const, [port, "revoked"] as const]))(
    "%s: no route takes a credential that is %s",
    async (port, state) => {
      const credentials = [`Authorization: Bearer ${ended[port][state]}`];
      const attempts = served[port].guarded.map((route) => ({ route, credentials }));
      expect(await faultsOf(port, attempts, isRefused)).toEqual([]);
      expect(attempts.length).toBeGreaterThan(0);
    },
  );

  test("api: another company's token finds nothing behind the id of a resource", async () => {
    const credentials = [`Authorization: Bearer ${beta}`];
    const withId = served.api.guarded.filter(({ pattern }) => pattern.includes(":"));
    const attempts = withId.map((route) => ({ route, credentials }));
    const isHidden = ({ status }: RawAnswer) => [400, 403, 404, 422].includes(status);
    expect(await faultsOf("api", attempts, isHidden)).toEqual([]);
    const shipment = withId.filter(
      ({ pattern, method }) => pattern === "/v2/shipments/:id" && READING.has(method),
    );
    // Parameters that a call does not have are refused before the shipment is looked up.
    const reading = shipment.map((route) => ({ route, credentials, target: route.path }));
    expect(await faultsOf("api", reading, ({ status }) => status === 404)).toEqual([]);
    expect(reading.length).toBeGreaterThan(0);
  });

  test("api: a token without the scope that a route declares is 403, whatever the rest of the request", async () => {
    const bare = await mint({ scopes: [] }, runtime.live.now());
    const credentials = [`Authorization: Bearer ${bare}`];
    const scoped = apps.api.routes.filter((route) => {
      const access = guardOf(route)?.access;
      return typeof access === "object" && "scope" in access && access.scope !== null;
    });
    const names = new Set(scoped.map(({ method, path }) => `${method} ${path}`));
    const attempts = served.api.routes
      .filter(({ method, pattern }) => names.has(`${method} ${pattern}`))
      .map((route) => ({ route, credentials }));
    const lacksScope = ({ status, body }: RawAnswer) =>
      status === 403 && body.includes("MISSING_SCOPE");
    expect(await faultsOf("api", attempts, lacksScope)).toEqual([]);
    expect(attempts.length).toBeGreaterThan(15);
  });

  test("ingest: another courier's token does not send a courier's events", async () => {
    const connection = openRawConnection(served.ingest.url);
    const envelope = { schemaVersion: "1.0", messageId: "m", sentAt: "2026-11-20T10:00:00+01:00" };
    const body = JSON.stringify({ ...envelope, courier: "GLS_ITA", events: [event()] });
    for (const path of ["/v1/events", "/v1/events/validate"]) {
      const headers = ["Host: localhost", "Content-Type: application/json"];
      const token = ["Authorization: Bearer tok_brt_1"];
      const answer = await connection.ask(
        rawRequest("POST", path, [...headers, ...token], { body }),
      );
      expect(answer.status).toBe(403);
    }
    connection.close();
  });

  test("panel: a session changes nothing without the word of the browser that a page of ours asks", async () => {
    const changing = served.panel.guarded.filter(({ method }) => !READING.has(method));
    const evidence = [
      [],
      ["Sec-Fetch-Site: cross-site"],
      ["Sec-Fetch-Site: same-site"],
      ["Sec-Fetch-Site: none"],
      ["Origin: http://evil.example"],
      ["Origin: null"],
    ];
    const attempts = changing.flatMap((route) =>
      evidence.map((headers) => ({ route, credentials: [`Cookie: ${session}`, ...headers] })),
    );
    expect(await faultsOf("panel", attempts, ({ status }) => status === 403)).toEqual([]);
  });
});

/** What a server may take for the same path, or cut another one out of. */
function damaged(path: string): string[] {
  const encodedFirst = path.replace(/[a-z]/, (letter) => `%${letter.charCodeAt(0).toString(16)}`);
  return [
    ...["/xy", "/", "/\\", "/.", "/%2e", "/x/..", "/x/%2e%2e", "/..", "/%2f", "http://evil"].map(
      (before) => `${before}${path}`,
    ),
    ...[
      "/",
      "//",
      ";x",
      "%00",
      "%20",
      ".",
      "#x",
      "/.",
      "/..",
      "/%2e%2e",
      "%3fx",
      "?/panel/login",
    ].map((after) => `${path}${after}`),
    `/${path.slice(1).replaceAll("/", "\\")}`,
    `/${path.slice(1).replaceAll("/", "%2F")}`,
    `/${path.slice(1).replaceAll("/", "%5C")}`,
    path.replaceAll("/", "//"),
    path.toUpperCase(),
    encodedFirst,
    `http://localhost/healthz/..${path}`,
    `//localhost${path}`,
  ];
}

const SHORT_HOSTS = ["a", "b.c", "a:1"];
const BAD_HOSTS = [
  ...["", " ", "[::1", "x:99999", "x:y", "999.1.1.1", "a%00"],
  ...["a/b", "a b", "u:p@h", "a?b", "a#b", "a\\b", "é", "a, b"],
].map((host) => [`Host: ${host}`]);
/** Broken off, no hexadecimal, no UTF-8, overlong, half a surrogate pair. */
const NO_TEXT = ["%", "%2", "%u0000", "%ff", "%c0%ae", "%ed%a0%80"];
const TWO_HOSTS = ["Host: localhost", "Host: a"];

describe("Host and path that no real client sends", () => {
  test.each([...PORTS])(
    "%s: no guarded route opens, none fails",
    async (port) => {
      const attempts = served[port].guarded.flatMap((route) => [
        ...damaged(route.path).flatMap((target) => [
          { route, target },
          { route, target, host: ["Host: a"] },
        ]),
        ...SHORT_HOSTS.flatMap((host) => [
          { route, host: [`Host: ${host}`] },
          { route, host: [`Host: ${host}`], target: `/xyz${route.path}` },
          { route, host: [`Host: ${host}`], target: `/healthz${route.path}` },
        ]),
        ...["", "/x", "/xy", "/xyzxyzxyz", "/healthz"].flatMap((before) => [
          { route, host: [], version: "1.0", target: `${before}${route.path}` },
          { route, host: ["Host:"], version: "1.0", target: `${before}${route.path}` },
        ]),
      ]);
      expect(await faultsOf(port, attempts, isTurnedAway)).toEqual([]);
    },
    120_000,
  );

  test.each([...PORTS])(
    "%s: a Host that does not parse is 400 on every route",
    async (port) => {
      const hosts = [...BAD_HOSTS, TWO_HOSTS, []];
      const attempts = served[port].routes.flatMap((route) =>
        hosts.map((host) => ({ route, host })),
      );
      expect(await faultsOf(port, attempts, ({ status }) => status === 400)).toEqual([]);
    },
    120_000,
  );

  test.each([...PORTS])(
    "%s: a path that no text was percent-encoded to is 400 on every route",
    async (port) => {
      const attempts = served[port].routes.flatMap((route) =>
        NO_TEXT.flatMap((part) => [
          { route, target: `${route.path}${part}` },
          { route, target: `${route.pattern.replaceAll(/:\w+/g, part)}/${part}` },
          { route, target: route.pattern.replace(/\w*$/, part) },
        ]),
      );
      expect(await faultsOf(port, attempts, ({ status }) => status === 400)).toEqual([]);
    },
    120_000,
  );

  test("400 is a problem document, on the merchants' API its error body", async () => {
    for (const port of PORTS) {
      const connection = openRawConnection(served[port].url);
      const answer = await connection.ask(rawRequest("GET", "/healthz", ["Host: a/b"]));
      const type = port === "api" ? "application/json" : "application/problem+json";
      expect(answer.headers.get("content-type")).toStartWith(type);
      expect(JSON.parse(answer.body)).toMatchObject({ status: 400, code: "BAD_REQUEST_TARGET" });
      connection.close();
    }
  });

  test("the probes of a load balancer need no Host in HTTP/1.0, and a short one is enough", async () => {
    for (const port of PORTS) {
      const connection = openRawConnection(served[port].url);
      for (const path of ["/healthz", "/readyz", "/metrics"]) {
        const bare = rawRequest("GET", path, [], { version: "1.0" });
        const short = rawRequest("GET", path, ["Host: a"]);
        expect((await connection.ask(bare)).status).toBe(200);
        expect((await connection.ask(short)).status).toBe(200);
      }
      connection.close();
    }
  });

  test.each([...PORTS])("%s: a method that a path does not have opens nothing", async (port) => {
    const methods = ["OPTIONS", "TRACE", "PROPFIND", "CONNECT"];
    const attempts = served[port].routes.flatMap((route) =>
      methods.map((method) => ({ route: { ...route, method } })),
    );
    expect(await faultsOf(port, attempts, isTurnedAway)).toEqual([]);
  });

  test.each([...PORTS])("%s: public routes never fail either", async (port) => {
    const open = served[port].routes.filter((route) => !served[port].guarded.includes(route));
    const attempts = open.flatMap((route) => [
      { route },
      ...damaged(route.path).map((target) => ({ route, target })),
      { route, host: [], version: "1.0" },
    ]);
    expect(await faultsOf(port, attempts, ({ status }) => status > 0 && status < 500)).toEqual([]);
  });
});

test("none of this was an unexpected error: the log is empty", async () => {
  expect(logged).toEqual([]);
  const further = { "answers of 5xx but 503": failed, "unexpected errors": logged.length };
  await measuring.done({ inputs: asked, further });
});
