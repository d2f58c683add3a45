/** Health, readiness and metrics: on every port, of every role, and never a way to keep Redis busy. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startAnalytics } from "#analytics/main.ts";
import { readConfig } from "#core/platform/environment/config.ts";
import { createLog } from "#core/platform/process/log.ts";
import { WRONG_SECRETS } from "#core/platform/secrets/wrong-secrets.ts";
import { openOpsPort } from "#core/runtime/ops-port.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { PROCESSORS_ALONE, startProcessors } from "#processors/main.ts";
import { untilRefused } from "#test/support/clients/until-refused.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { productEnv, startProduct } from "#test/support/product/product.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { startClickhouseHttp } from "#test/support/servers/clickhouse-http.ts";
import { freePort } from "#test/support/servers/free-port.ts";
import { type RedisProxy, startRedisProxy } from "#test/support/servers/redis-proxy.ts";
import {
  type RestartableRedis,
  startRestartableRedis,
  startTestRedis,
} from "#test/support/servers/servers.ts";

const { version } = await Bun.file(join(import.meta.dir, "../../../package.json")).json();
const START_LIMIT_MS = 60_000;
const TOKEN = "metrics-token-of-the-tests";

const statusOf = async (url: string, headers = {}) => (await fetch(url, { headers })).status;
const isReady = async (url: string) =>
  (await fetch(`${url}/readyz`).catch(() => null))?.status === 200;

describe("what a call costs Redis", () => {
  let runtime: TestRuntime;
  let port: Running;

  beforeAll(async () => {
    runtime = await openTestRuntime(testSetup(), { STORE_PARTITIONS: "16" });
    port = openOpsPort(runtime, "test", 0);
  });
  afterAll(async () => {
    await port.stop();
    await runtime.end();
  });

  async function callsOf(command: string): Promise<number> {
    const stats = await runtime.redis.info("commandstats");
    return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  }

  /** Calls of a command that these requests have caused. */
  async function costOf(command: string, requests: number, path: string): Promise<number> {
    const before = await callsOf(command);
    const urls = Array.from({ length: requests }, () => `${port.url}${path}`);
    const answers = await Promise.all(urls.map((url) => fetch(url)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    return (await callsOf(command)) - before;
  }

  const secondsSince = (ms: number) => Math.floor((performance.now() - ms) / 1_000);

  test("100 calls of /metrics at once share one computation, and so do those of the next second", async () => {
    const one = await costOf("hgetall", 1, "/metrics");
    expect(one).toBeGreaterThan(10);
    const isMeasured = async () => (await costOf("hgetall", 1, "/metrics")) > 0;
    await eventually(isMeasured, "the next second begins");
    const fromMs = performance.now();
    const all = await costOf("hgetall", 100, "/metrics");
    // On a machine that takes seconds for it, further computations may begin.
    expect(all).toBeLessThanOrEqual((2 + secondsSince(fromMs)) * one);
  });

  test("figures are measured again after a second", async () => {
    const figure = async () =>
      /waybill_ledger\{entry="received"\} (\d+)/.exec(
        await (await fetch(`${port.url}/metrics`)).text(),
      )?.[1];
    const before = Number(await figure());
    await runtime.redis.hIncrBy("{e0}:ledger", "received:GLS_ITA", 1);
    await eventually(async () => Number(await figure()) === before + 1, "the figure has grown");
  });

  test("100 calls of /readyz at once ask Redis once, beside the connection's own ping a second", async () => {
    const fromMs = performance.now();
    const all = await costOf("ping", 100, "/readyz");
    expect(all).toBeLessThanOrEqual(2 + 2 * secondsSince(fromMs));
  });
});

describe("METRICS_TOKEN", () => {
  test("/metrics needs it, health and readiness do not", async () => {
    const runtime = await openTestRuntime(testSetup(), { METRICS_TOKEN: TOKEN });
    const port = openOpsPort(runtime, "test", 0);
    const scrape = (authorization: string) => statusOf(`${port.url}/metrics`, { authorization });
    expect(await statusOf(`${port.url}/metrics`)).toBe(401);
    for (const wrong of ["Bearer ", `Bearer ${TOKEN}x`, `Basic ${TOKEN}`, TOKEN]) {
      expect(await scrape(wrong)).toBe(401);
    }
    expect(await scrape(`Bearer ${TOKEN}`)).toBe(200);
    expect(await statusOf(`${port.url}/healthz`)).toBe(200);
    expect(await statusOf(`${port.url}/readyz`)).toBe(200);
    expect(await statusOf(`${port.url}/elsewhere`)).toBe(404);
    await port.stop();
    await runtime.end();
  });
});

describe("wrong tokens of /metrics", () => {
  test(`${WRONG_SECRETS.burst} from one address are 401, the next is 429; the scraper goes on`, async () => {
    const runtime = await openTestRuntime(testSetup(), { METRICS_TOKEN: TOKEN });
    const port = openOpsPort(runtime, "test", 0);
    const scrape = (token: string) =>
      fetch(`${port.url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
    expect((await scrape(TOKEN)).status).toBe(200);
    const refused = await untilRefused(WRONG_SECRETS, 401, (at) => scrape(`guess-${at}`));
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await scrape(TOKEN)).status).toBe(200);
    await port.stop();
    await runtime.end();
  });
});

/** The counters that the alarms compare over time, each with the labels that they ask for. */
async function countersOfAlarms(): Promise<{ name: string; labels: string[] }[]> {
  const text = await Bun.file("deploy/prometheus/rules.yaml").text();
  const { groups } = Bun.YAML.parse(text) as { groups: { rules: { expr: string }[] }[] };
  const counter = /\b(waybill_\w+(?:_total|_count|_bucket))\b(?:\{(.*?)\})?/g;
  return groups
    .flatMap(({ rules }) => rules.flatMap(({ expr }) => [...expr.matchAll(counter)]))
    .map(([, name = "", matchers = ""]) => ({
      name,
      labels: [...(matchers.match(/\w+="[^"]*"/g) ?? [])],
    }));
}

/** Those without a sample in an answer of `/metrics`. */
async function countersMissing(metrics: string): Promise<string[]> {
  const lines = metrics.split("\n");
  const asked = await countersOfAlarms();
  expect(asked.length).toBeGreaterThan(10);
  return asked
    .filter(
      ({ name, labels }) =>
        !lines.some(
          (line) =>
            /^\w+/.exec(line)?.[0] === name && labels.every((label) => line.includes(label)),
        ),
    )
    .map(({ name, labels }) => `${name}{${labels}}`);
}

describe("METRICS_PORT", () => {
  test("takes /metrics from every other port, in every role of the process", async () => {
    const [metrics, processors, analytics] = [await freePort(), await freePort(), await freePort()];
    const product = await startProduct(testSetup(), {
      METRICS_PORT: String(metrics),
      PROCESSORS_PORT: String(processors),
      ANALYTICS_PORT: String(analytics),
    });
    const own = [processors, analytics].map((port) => `http://127.0.0.1:${port}`);
    for (const url of [product.ingest, product.api, product.panel, ...own]) {
      expect(await statusOf(`${url}/metrics`)).toBe(404);
      const alive = await (await fetch(`${url}/healthz`)).json();
      expect(alive).toEqual({ status: "ok", service: "waybill", version, commit: null });
      await eventually(() => isReady(url), "the role is ready", START_LIMIT_MS);
    }
    const text = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text();
    for (const role of ["ingest", "api", "panel"]) {
      expect(text).toContain(`waybill_http_request_seconds_count{role="${role}",status="5xx"} 0`);
    }
    // Under the names of Prometheus's own libraries too.
    for (const name of ["process_cpu_seconds_total", "process_resident_memory_bytes"]) {
      expect(text).toMatch(new RegExp(`^${name}(\\{.*\\})? [\\d.e+]+$`, "m"));
    }
    // An alarm would miss the first incident of a counter that begins with it.
    expect(await countersMissing(text)).toEqual([]);
    for (const group of [
      "track",
      "references",
      "webhooks",
      "notify",
      "analytics",
      "attempts",
      "audit",
    ]) {
      expect(text).toContain(`waybill_dead_letters_total{group="${group}"} 0`);
      expect(text).toContain(`waybill_store_failures_total{part="${group}",store="redis"}`);
    }
    expect(text).toContain('waybill_events_total{courier="BRT_ITA",outcome="INVALID"} 0');
    const build = text.split("\n").filter((line) => line.startsWith("waybill_build_info{"));
    const roles = ["ingest", "api", "processors", "analytics", "panel"];
    expect(build.map((line) => /role="(\w+)"/.exec(line)?.[1] ?? "").sort()).toEqual(roles.sort());
    for (const line of build) {
      expect(line).toContain(`version="${version}"`);
      expect(line).toContain(`bun="${Bun.version}"`);
      expect(line).toEndWith(" 1");
    }
    await product.end();
  }, 300_000);
});

describe("processors", () => {
  let server: RestartableRedis;
  let runtime: TestRuntime;
  let processors: Running;

  beforeAll(async () => {
    server = await startRestartableRedis();
    runtime = await openTestRuntime(testSetup(), { PROCESSORS_PORT: "0" }, server);
    processors = await startProcessors(runtime);
  });
  afterAll(async () => {
    await processors.stop();
    await runtime.end();
  });

  test("answer on their port; without Redis they live and are not ready", async () => {
    const url = processors.url ?? "";
    expect(await isReady(url)).toBe(true);
    expect(await (await fetch(`${url}/metrics`)).text()).toContain("waybill_");
    await server.kill();
    const reported = await eventually(async () => {
      const answer = await fetch(`${url}/readyz`);
      return answer.status === 503 && answer.json();
    }, "not ready");
    expect(reported).toEqual({ status: "not ready", reason: "Redis does not answer" });
    expect(await statusOf(`${url}/healthz`)).toBe(200);
    await server.restart();
    await eventually(() => isReady(url), "ready again");
  });

  test("open no port in a process with others, unless one is configured", async () => {
    const config = { ...runtime.config, ports: { ...runtime.config.ports, processors: null } };
    const silent = await startProcessors({ ...runtime, config });
    expect(silent.url).toBeNull();
    await silent.stop();
  });

  test("are not ready any more once they stop", async () => {
    const another = await startProcessors(runtime);
    const url = another.url ?? "";
    const stopped = another.stop();
    await eventually(
      async () => (await fetch(`${url}/readyz`).catch(() => null))?.status !== 200,
      "not ready",
    );
    await stopped;
    expect(await fetch(`${url}/healthz`).catch(() => null)).toBeNull();
  });
});

describe("analytics", () => {
  test("are ready while their ClickHouse server answers", async () => {
    const clickhouse = await startClickhouseHttp();
    const runtime = await openTestRuntime(testSetup(), {
      ANALYTICS_PORT: "0",
      CLICKHOUSE_URL: clickhouse.address ?? "",
    });
    const analytics = await startAnalytics(runtime);
    const url = analytics.url ?? "";
    await eventually(() => isReady(url), "ready");
    await clickhouse.stop();
    const reportedNow = await eventually(async () => {
      const answer = await fetch(`${url}/readyz`);
      return answer.status === 503 && answer.json();
    }, "not ready");
    expect(reportedNow).toEqual({ status: "not ready", reason: "ClickHouse does not answer" });
    expect(await statusOf(`${url}/healthz`)).toBe(200);
    await analytics.stop();
    await runtime.end();
  }, 300_000);
});

describe("a role alone", () => {
  let folder: string;
  let server: Awaited<ReturnType<typeof startTestRedis>>;
  let proxy: RedisProxy;
  const children: ChildProcess[] = [];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "waybill-alone-"));
    server = await startTestRedis();
    proxy = await startRedisProxy(server.address);
  });
  afterAll(async () => {
    for (const child of children) await kill(child);
    await proxy.stop();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });

  async function kill(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  /** @returns where it answers, from its log */
  async function start(role: string, env: Readonly<Record<string, string>> = {}) {
    const child = spawn("bun", [`${role}/main.ts`], {
      stdio: ["ignore", "pipe", "ignore"],
      env: { ...productEnv(), DATA_DIR: folder, REDIS_URL: proxy.url, LOG_LEVEL: "info", ...env },
    });
    children.push(child);
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => {
      output += String(chunk);
    });
    const url = await eventually(
      () => new RegExp(`"${role}":"(http://[^"]+)","msg":"ready"`).exec(output)?.[1],
      `${role} has started`,
      START_LIMIT_MS,
    );
    return { child, url, output: () => output };
  }

  test("has its usual port; a second one on the machine takes a free one and says so", async () => {
    // Another process may have the usual port of 127.0.0.1. `freePort` gives each process other numbers: an address made from one is used by this test alone.
    const own = await freePort();
    const host = `127.1.${own >> 8}.${own & 255}`;
    let said = "";
    const write = (line: string) => {
      said += line;
    };
    const log = createLog("warn", { write });
    const bind = () => PROCESSORS_ALONE.bind?.(readConfig({ HOST: host }), log);
    const first = await bind();
    expect([first?.url, said]).toEqual([`http://${host}:8083`, ""]);
    const second = await bind();
    expect(second?.url).toStartWith(`http://${host}:`);
    expect(second?.url).not.toBe(first?.url ?? "");
    expect(said).toContain("usual port is in use");
    for (const listener of [first, second]) listener?.close();
  });

  test("analytics that share an embedded ClickHouse are ready, whichever of them started it", async () => {
    const first = await start("analytics", { ANALYTICS_PORT: "0" });
    const second = await start("analytics", { ANALYTICS_PORT: "0" });
    for (const { url } of [first, second])
      await eventually(() => isReady(url), "ready", START_LIMIT_MS);
    await kill(first.child);
    const answer = await fetch(`${second.url}/readyz`);
    expect(answer.status).toBe(200);
  }, 300_000);
});

describe("compose.yaml", () => {
  interface Service {
    readonly build?: string;
    readonly image?: string;
    readonly command?: readonly string[];
    readonly profiles?: readonly string[];
    readonly healthcheck?: { readonly test: readonly string[] };
  }
  const PORTS = { ingest: 8081, api: 8080, panel: 8082, processors: 8083, analytics: 8084 };

  async function servicesOf(): Promise<Readonly<Record<string, Service>>> {
    const text = await Bun.file(join(import.meta.dir, "../../../compose.yaml")).text();
    return (Bun.YAML.parse(text) as { services: Record<string, Service> }).services;
  }

  /** Exit status of a service's health check, asked of another port. */
  async function checkOf({ healthcheck }: Service, port: number): Promise<number> {
    const [kind, program = "", ...args] = healthcheck?.test ?? [];
    expect(kind).toBe("CMD");
    const command = [program, ...args.map((arg) => (/^\d+$/.test(arg) ? String(port) : arg))];
    return Bun.spawn(command, { stdout: "ignore", stderr: "ignore" }).exited;
  }

  test("every role has a health check on its own port", async () => {
    const services = await servicesOf();
    const ours = Object.keys(services).filter((name) => services[name]?.image === "waybill");
    expect(ours.filter((name) => !services[name]?.profiles).sort()).toEqual(
      Object.keys(PORTS).sort(),
    );
    for (const [role, port] of Object.entries(PORTS)) {
      expect(services[role]?.healthcheck?.test.at(-1)).toBe(String(port));
    }
  });

  test("each exits 0 for a role that is ready, 1 for one that is not, or is not there", async () => {
    const runtime = await openTestRuntime(testSetup());
    const ready = openOpsPort(runtime, "ready", 0);
    const unready = openOpsPort(runtime, "unready", 0, { reasonNotReady: async () => "never" });
    const portOf = ({ url }: { readonly url: string }) => Number(new URL(url).port);
    for (const [role, service] of Object.entries(await servicesOf())) {
      if (!(role in PORTS)) continue;
      expect(await checkOf(service, portOf(ready))).toBe(0);
      expect(await checkOf(service, portOf(unready))).toBe(1);
      expect(await checkOf(service, await freePort())).toBe(1);
    }
    await ready.stop();
    await unready.stop();
    await runtime.end();
  }, 300_000);
});
