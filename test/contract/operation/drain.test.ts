/** design.md, "Starting, stopping, failing": stopping drains. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { LAST_BODY_LIMIT_MS } from "#core/platform/process/stop-limits.ts";
import { startTlsFront } from "#ingest/tls-front.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { openRawConnection, rawRequest } from "#test/support/clients/raw-http.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { startCommand } from "#test/support/product/command.ts";
import { BARE, newProduct, PANEL_TOKEN, type Product } from "#test/support/product/product.ts";
import { createTestAuthority } from "#test/support/servers/certificates.ts";
import {
  type ClickhouseServer,
  startClickhouseHttp,
} from "#test/support/servers/clickhouse-http.ts";
import { freePort } from "#test/support/servers/free-port.ts";
import { type RedisProxy, startRedisProxy } from "#test/support/servers/redis-proxy.ts";
import { startTestRedis } from "#test/support/servers/servers.ts";

/** Longer than any test may take: only a signal ends it. */
const FOR_EVER = "600";
/** `SAME_SIGNAL_MS` of core/runtime/end-on-signal.ts, and room. */
const NO_COPY_MS = 600;
/** Longer than a body may still arrive, and much less than the 21 s of a survey. */
const SLOW_ANSWER_MS = LAST_BODY_LIMIT_MS + 2_000;
/** Of `trend.sql`. */
const SURVEY_PARAMETER = "param_destCap=00184";
const TEST_LIMIT_MS = 300_000;

const HOST_LINE = "Host: waybill.test";

async function statusOf(url: string): Promise<number | null> {
  return fetch(url).then(
    ({ status }) => status,
    () => null,
  );
}

describe("a process that is told to stop", () => {
  let product: Product;
  let clickhouse: ClickhouseServer;
  let slow: SlowProxy;
  let others: Readonly<Record<"processors" | "analytics" | "metrics", string>>;

  beforeAll(async () => {
    const [processors, analytics, metrics] = await Promise.all([
      freePort(),
      freePort(),
      freePort(),
    ]);
    const address = (port: number) => `http://127.0.0.1:${port}`;
    others = {
      processors: address(processors),
      analytics: address(analytics),
      metrics: address(metrics),
    };
    clickhouse = await startClickhouseHttp();
    slow = startSlowProxy(clickhouse.address);
    product = await newProduct(BARE, testSetup(), {
      CLICKHOUSE_URL: slow.address,
      PROCESSORS_PORT: String(processors),
      ANALYTICS_PORT: String(analytics),
      METRICS_PORT: String(metrics),
      DRAIN_SECONDS: FOR_EVER,
    });
  });

  afterEach(async () => {
    if (signal("SIGINT")) await hasEnded();
  });

  afterAll(async () => {
    await product.end();
    await slow.stop();
    await clickhouse.stop();
  }, TEST_LIMIT_MS);

  const ports = () => [product.ingest, product.api, product.panel, ...Object.values(others)];

  function signal(name: "SIGTERM" | "SIGINT"): boolean {
    try {
      return product.pid() > 0 && process.kill(product.pid(), name);
    } catch {
      return false;
    }
  }

  const hasEnded = () => product.ended();

  const portCloses = () =>
    eventually(
      async () => (await statusOf(`${product.ingest}/healthz`)) === null,
      "the port is closed",
    );

  const drains = () =>
    eventually(async () => (await statusOf(`${product.ingest}/readyz`)) === 503, "it drains");

  test(
    "is no longer ready on any port, serves on all of them, and asks its clients to close",
    async () => {
      await product.start();
      const kept = openRawConnection(product.ingest);
      const healthz = rawRequest("GET", "/healthz", [HOST_LINE]);
      expect((await kept.ask(healthz)).headers.get("connection")).not.toBe("close");
      signal("SIGTERM");
      await drains();
      for (const url of ports()) {
        const ready = await fetch(`${url}/readyz`);
        expect([ready.status, await ready.json()]).toEqual([
          503,
          { status: "not ready", reason: "stopping" },
        ]);
        expect(await statusOf(`${url}/healthz`)).toBe(200);
      }
      const last = await kept.ask(healthz);
      expect([last.status, last.headers.get("connection")]).toEqual([200, "close"]);
      kept.close();
      const accepted = await push(product.ingest, [event()]);
      expect([accepted.status, accepted.headers.get("connection")]).toEqual([200, "close"]);
      expect(await statusOf(`${product.api}/v2/openapi.json`)).toBe(200);
      expect(await statusOf(`${others.metrics}/metrics`)).toBe(200);
    },
    TEST_LIMIT_MS,
  );

  test(
    "answers a request whose body is still arriving when the port closes",
    async () => {
      await product.start();
      const { sending, finish } = await beginMessage(product.ingest);
      signal("SIGTERM");
      await drains();
      signal("SIGINT");
      await portCloses();
      finish();
      expect(await sending).toStartWith("HTTP/1.1 200 ");
      expect(await hasEnded()).toBe(0);
    },
    TEST_LIMIT_MS,
  );

  test(
    "answers a request that was accepted, however long ClickHouse takes, and accepts no other meanwhile",
    async () => {
      await product.start();
      const release = slow.hold(SURVEY_PARAMETER);
      const headers = { authorization: `Bearer ${PANEL_TOKEN}` };
      const asking = fetch(`${product.panel}/panel/api/analytics/trend?destCap=00184`, { headers });
      await eventually(slow.isHolding, "ClickHouse is asked");
      signal("SIGTERM");
      await drains();
      signal("SIGINT");
      await portCloses();
      const closedAtMs = performance.now();
      await eventually(
        () => performance.now() - closedAtMs > SLOW_ANSWER_MS,
        "the answer takes its time",
      );
      for (const url of [product.ingest, product.api, product.panel]) {
        expect(await statusOf(`${url}/healthz`)).toBeNull();
      }
      release();
      const answer = await asking;
      expect([answer.status, await answer.json()]).toEqual([200, { items: [] }]);
      expect(await hasEnded()).toBe(0);
    },
    TEST_LIMIT_MS,
  );

  test(
    "refuses a body that goes on arriving, so that it is sent again, and does not wait for half a head",
    async () => {
      await product.start();
      const token = rawRequest("POST", "/v2/auth/token", [
        HOST_LINE,
        "Content-Type: application/json",
        "Content-Length: 100",
      ]);
      const [courier, client, half] = await Promise.all([
        beginMessage(product.ingest),
        beginRequest(product.api, `${token}{`),
        beginRequest(product.panel, "GET /healthz HTTP/1.1\r\nHo"),
      ]);
      signal("SIGINT");
      for (const answer of await Promise.all([courier.sending, client.sending])) {
        expect(answer).toStartWith("HTTP/1.1 503 ");
        expect(answer.toLowerCase()).toContain("retry-after: 1\r\n");
        expect(answer).toContain("nothing was accepted");
      }
      expect(await hasEnded()).toBe(0);
      expect(await half.sending).toBe("");
    },
    TEST_LIMIT_MS,
  );

  test(
    "ends the streams of the panel, and one that begins afterwards has a single reading",
    async () => {
      await product.start();
      const headers = { cookie: await logIn(product.panel) };
      const open = () => fetch(`${product.panel}/panel/api/overview/stream`, { headers });
      const before = (await open()).text();
      signal("SIGTERM");
      expect(await before).toStartWith("event: overview\n");
      const after = await (await open()).text();
      expect(after.split("event: overview\n")).toHaveLength(2);
      signal("SIGINT");
      expect(await hasEnded()).toBe(0);
    },
    TEST_LIMIT_MS,
  );
});

interface SlowProxy {
  readonly address: string;
  /** From now on the answers to statements with this parameter wait. @returns lets them pass */
  readonly hold: (parameter: string) => () => void;
  readonly isHolding: () => boolean;
  readonly stop: () => Promise<void>;
}

/** Between the product and ClickHouse: what passes is the real server's. */
function startSlowProxy(target: string): SlowProxy {
  const { origin, username, password } = new URL(target);
  let held: { readonly parameter: string; readonly over: Promise<void> } | null = null;
  let isHolding = false;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const { method, headers } = request;
      const body = method === "POST" ? await request.arrayBuffer() : null;
      const answer = await fetch(`${origin}${pathname}${search}`, {
        method,
        headers,
        body,
        decompress: false,
      });
      if (held && search.includes(held.parameter)) {
        isHolding = true;
        await held.over;
      }
      return answer;
    },
  });
  return {
    address: `http://${username}:${password}@127.0.0.1:${server.port}/default`,
    hold(parameter) {
      const { promise: over, resolve } = Promise.withResolvers<void>();
      held = { parameter, over };
      return resolve;
    },
    isHolding: () => isHolding,
    stop: () => server.stop(true),
  };
}

describe("a signal", () => {
  let server: Awaited<ReturnType<typeof startTestRedis>>;
  let proxy: RedisProxy;
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "waybill-signal-"));
    server = await startTestRedis();
    proxy = await startRedisProxy(server.address);
  });
  afterAll(async () => {
    await proxy.stop();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });

  /** A role alone hears signals as the whole product does. */
  async function startAlone() {
    const port = await freePort();
    const process = startCommand(["bun", "ingest/main.ts"], {
      DATA_DIR: folder,
      REDIS_URL: proxy.url,
      INGEST_PORT: String(port),
      LOG_LEVEL: "warn",
      DRAIN_SECONDS: FOR_EVER,
    });
    const url = `http://127.0.0.1:${port}`;
    await eventually(async () => (await statusOf(`${url}/readyz`)) === 200, "it is ready");
    return { process, url };
  }

  test(
    "SIGTERM that comes a second time ends the wait, unless it comes at once: then it is a copy of the first",
    async () => {
      const { process, url } = await startAlone();
      process.kill("SIGTERM");
      const firstAtMs = performance.now();
      process.kill("SIGTERM");
      await eventually(async () => (await statusOf(`${url}/readyz`)) === 503, "it drains");
      await eventually(() => performance.now() - firstAtMs > NO_COPY_MS, "half a second is over");
      expect(await statusOf(`${url}/healthz`)).toBe(200);
      process.kill("SIGTERM");
      expect(await process.exited).toBe(0);
    },
    TEST_LIMIT_MS,
  );

  test(
    "SIGINT does not wait, so that Ctrl-C in a terminal is quick",
    async () => {
      const { process } = await startAlone();
      process.kill("SIGINT");
      expect(await process.exited).toBe(0);
    },
    TEST_LIMIT_MS,
  );
});

/** A message to ingest of which a part is missing. @returns the answer, once it has been finished */
async function beginMessage(url: string) {
  const body = JSON.stringify({
    schemaVersion: "1.0",
    messageId: "slow",
    sentAt: "2026-11-20T10:00:00+01:00",
    courier: "GLS_ITA",
    events: [event()],
  });
  const head = rawRequest("POST", "/v1/events", [
    HOST_LINE,
    "Authorization: Bearer tok_gls_1",
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(body)}`,
  ]);
  const { sending, socket } = await beginRequest(url, head + body.slice(0, 20));
  return { sending, finish: () => void socket.write(body.slice(20)) };
}

/** Sends a part of a request. @returns all that is answered, once the connection has been closed */
async function beginRequest(url: string, part: string) {
  const { hostname, port } = new URL(url);
  const socket: Socket = connect(Number(port), hostname);
  const sending = new Promise<string>((resolve) => {
    let received = "";
    socket.on("data", (bytes) => {
      received += String(bytes);
    });
    socket.on("close", () => resolve(received)).on("error", () => resolve(received));
  });
  await new Promise((resolve) => socket.once("connect", resolve));
  socket.write(part);
  await isRead(url);
  return { sending, socket };
}

/**
 * What was sent to this port before has been read: a port resets a connection that it has not accepted yet when it closes. One answer
 * may come through a connection from before, in the turn of the event loop that accepts the new one; the second comes later.
 */
async function isRead(url: string): Promise<void> {
  expect(await statusOf(`${url}/healthz`)).toBe(200);
  expect(await statusOf(`${url}/healthz`)).toBe(200);
}

/** @returns the cookie of an operator in a browser */
async function logIn(panel: string): Promise<string> {
  const body = new URLSearchParams({ token: PANEL_TOKEN });
  const answer = await fetch(`${panel}/panel/login`, { method: "POST", body, redirect: "manual" });
  return answer.headers.get("set-cookie")?.split(";")[0] ?? "";
}

describe("an answer that ends its connection, through the TLS of ingest", () => {
  /** Some of it still waits for the reader when the server closes its side. */
  const ANSWER_BYTES = 8_000_000;
  const ANSWERS = 5;
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "waybill-drain-"));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  async function startFront() {
    const { server } = await createTestAuthority();
    const certFile = join(folder, "server.pem");
    const keyFile = join(folder, "server.key");
    await Promise.all([writeFile(certFile, server.cert), writeFile(keyFile, server.key)]);
    const http = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () => new Response("x".repeat(ANSWER_BYTES), { headers: { connection: "close" } }),
    });
    const tls = { certFile, keyFile, clientCaFile: null };
    const listen = { variable: "INGEST_PORT", host: "127.0.0.1", port: 0 };
    const front = await startTlsFront(tls, listen, http.port ?? 0);
    return {
      port: front.port,
      async stop() {
        front.close();
        front.end();
        await http.stop(true);
      },
    };
  }

  function ask(port: number) {
    const socket = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false }, () =>
      socket.write(`GET / HTTP/1.1\r\n${HOST_LINE}\r\n\r\n`),
    );
    return socket;
  }

  test("arrives whole at a slow reader", async () => {
    const front = await startFront();
    for (let n = 0; n < ANSWERS; n += 1) {
      const socket = ask(front.port);
      let received = 0;
      socket.on("data", (bytes) => {
        received += bytes.length;
        socket.pause();
        setTimeout(() => socket.resume(), 5);
      });
      await new Promise((resolve) => socket.once("close", resolve));
      expect(received).toBeGreaterThan(ANSWER_BYTES);
    }
    await front.stop();
  });
});
