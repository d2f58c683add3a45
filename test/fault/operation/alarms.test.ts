/**
 * The alarms of the operations guide, provoked in the running product: its `/metrics` is read when it is well, in trouble and
 * cured, and Prometheus' own tool says what the rules make of it. Rules look over minutes and a test does not, so the trouble is
 * taken to go on at the pace that was measured. `alarms.test.ts` in `test/unit` fires every rule with numbers made by hand.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { eventKeys, eventLogs, retriesKey } from "#core/platform/redis/keys.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { createShipments } from "#test/support/clients/event-stream.ts";
import { request } from "#test/support/clients/merchant.ts";
import { askPanel } from "#test/support/clients/operator.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { IS_MEASURED, noteSkipped, startMeasuring } from "#test/support/measured.ts";
import { newProduct, type Product } from "#test/support/product/product.ts";
import {
  type ClickhouseServer,
  startClickhouseHttp,
} from "#test/support/servers/clickhouse-http.ts";
import { type RedisServer, startRedisServer } from "#test/support/servers/redis-server.ts";

const RULES_FILE = "deploy/prometheus/rules.yaml";
/** Minutes, as the rules see them: well, in trouble, cured. */
const WELL = 5;
const IN_TROUBLE = 45;
const CURED = 60;
const FILES_LIMIT = 1_024;
const SHIPMENTS = 10;
/** Longer than an answer may take. */
const FROZEN_MS = 1_300;
/** What `npm run test:slow` provokes; `npm run tool -- reliability` provokes all. */
const SHORT_FORM = [
  "WaybillRedisUnavailable",
  "WaybillLedgerDifference",
  "WaybillInvalidEvents",
  "WaybillDown",
];
const LEDGER = eventKeys(0).ledger;
const FIRST_LOG = eventLogs()[0] ?? "";
const INTERNAL = 'waybill_internal_errors_total{part="track"}';
const MAILS = 'waybill_webhook_alert_mails_total{outcome="failed"}';
const AWAY = /^waybill_store_failures_total\{.*store="clickhouse"/;
/** Grows whenever the metrics are computed, since that takes CPU time. */
const CPU_SECONDS = "waybill_process_cpu_seconds_total";
const DEAD = 'waybill_dead_letters_total{group="track"}';
/** Prometheus' own sample of every reading. */
const UP = 'up{job="waybill",role="all"}';
/** Past the first reminder about a failing endpoint. */
const DAY_SECONDS = 90_000;

interface Rule {
  readonly alert: string;
  readonly expr: string;
}

const { groups } = Bun.YAML.parse(await Bun.file(RULES_FILE).text()) as {
  groups: { rules: Rule[] }[];
};
const rules = groups.flatMap((group) => group.rules);

/** Samples of one reading, by series. */
type Reading = ReadonlyMap<string, number>;

interface Readings {
  readonly well: Reading;
  readonly trouble: Reading;
  readonly cured: Reading;
  /** From the first to the second. */
  readonly tookSeconds: number;
}

/** What brings an alarm up in the product, and what ends it. */
interface Provocation {
  readonly provoke: () => Promise<unknown>;
  readonly cure: () => Promise<unknown>;
  /** What waits grows on as it did while it was provoked. */
  readonly isGrowing?: boolean;
}

/** What this test leaves to the numbers made by hand, and why. */
const NOT_HERE: Readonly<Record<string, string>> = {
  WaybillExportUnavailable: "this product exports nothing",
  WaybillReplicasMissing: "this store has none; test/fault/redis/replicas.test.ts kills one",
  WaybillDeadLettersAtLimit: "a log keeps 10,000 dead letters",
  WaybillAuditFilling: "2,500 changes have to wait",
  WaybillAttemptsDropped: "62,500 attempts wait before one is dropped",
  WaybillExportOverdue: "it takes two days",
  WaybillArchiveOverdue: "it takes a day",
  WaybillArchiveDamaged: "no row is damaged by anything that the product does",
};

const promtool = Bun.which("promtool");
const NAME = "alarms provoked in the running product";
if (promtool === null) await noteSkipped("Alarms", NAME, "promtool is not installed");

describe.if(promtool !== null)("by Prometheus itself", () => {
  let folder: string;
  let server: RedisServer;
  let clickhouse: ClickhouseServer;
  let product: Product;
  let sockets: Socket[] = [];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "waybill-alarms-"));
    server = await startRedisServer();
    clickhouse = await startClickhouseHttp();
    const setup = testSetup();
    const [channel] = setup.companies?.[0]?.channels ?? [];
    if (channel) {
      // Nobody listens there.
      const url = "https://localhost:1/";
      const common = { trigger: "every_event", alertEmail: "ops@acme.test" } as const;
      channel.webhooks = [{ code: "main", url, statuses: ["IN_TRANSIT"], ...common }];
    }
    const start = `ulimit -n ${FILES_LIMIT}; exec bun cli/main.ts start --quiet`;
    product = await newProduct(["sh", "-c", start], setup, {
      REDIS_URL: server.url,
      WEBHOOK_ALLOWED_CIDRS: "127.0.0.0/8",
      SMTP_URL: "smtp://127.0.0.1:1",
      CLICKHOUSE_URL: clickhouse.address,
      CLICKHOUSE_READ_URL: clickhouse.address,
    });
    await product.start();
    await createShipments(product, "ALARM", SHIPMENTS);
  }, 300_000);

  afterAll(async () => {
    await product.end();
    await Promise.all([server.stop(), clickhouse.stop()]);
    await rm(folder, { recursive: true, force: true });
  }, 300_000);

  /** Null where it does not answer. */
  async function read(): Promise<Reading> {
    const answer = await fetch(`${product.ingest}/metrics`).catch(() => null);
    const text = answer?.ok ? await answer.text() : "";
    const samples = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    const reading = new Map(
      samples.map((line) => {
        const at = line.lastIndexOf(" ");
        return [line.slice(0, at), Number(line.slice(at + 1))] as const;
      }),
    );
    return reading.set(UP, answer?.ok ? 1 : 0);
  }

  /** Metrics computed after this call: the product caches its answer for a second. */
  async function readAfresh(): Promise<Reading> {
    const cached = (await read()).get(CPU_SECONDS);
    const isComputed = async () => {
      const reading = await read();
      return (reading.get(UP) === 0 || reading.get(CPU_SECONDS) !== cached) && reading;
    };
    // Not often: each request counts among those that the alarms are about.
    return eventually(isComputed, "the metrics are recomputed", 60_000, 250);
  }

  const isCounted = async (series: string) => ((await read()).get(series) ?? 0) > 0;
  const send = (count: number, members: object = {}) =>
    push(
      product.ingest,
      Array.from({ length: count }, (_, at) =>
        event({ trackingNumber: `ALARM-${at % SHIPMENTS}`, ...members }),
      ),
    );
  const overview = async () => (await askPanel(product, "GET", "/overview")).body;
  const departed = { status: { code: "DEP", description: "Partita" } };
  /** So that a share is taken of something. */
  const work = () => send(20, departed);
  /** Changes that ClickHouse would take. */
  async function pileUp(): Promise<void> {
    await clickhouse.kill();
    for (let n = 0; n < 20; n += 1) await send(100, departed);
  }
  async function drainLog(): Promise<void> {
    await clickhouse.restart();
    const isEmpty = async () =>
      (await overview()).lag.every(({ entries }: { entries: number }) => entries === 0);
    await eventually(isEmpty, "nothing waits", 60_000);
  }
  const setMemory = (most: string) => server.send("CONFIG", "SET", "maxmemory", most);

  const PROVOKED: Readonly<Record<string, Provocation>> = {
    WaybillInvalidEvents: { provoke: () => send(20, { status: 1 }), cure: work },
    WaybillEventsNotSetAside: {
      // More than one reference keeps.
      provoke: () => send(150, { trackingNumber: "nobody's" }),
      cure: work,
    },
    WaybillRedisUnavailable: {
      provoke: async () => {
        await setMemory("1mb");
        await send(1);
      },
      cure: () => setMemory("0"),
    },
    WaybillServerErrors: {
      provoke: async () => {
        await setMemory("1mb");
        for (let n = 0; n < 10; n += 1) await send(1);
      },
      async cure() {
        await setMemory("0");
        await eventually(async () => (await send(1)).status === 200, "events are accepted");
        for (let n = 0; n < 10; n += 1) await work();
      },
    },
    WaybillSlow: {
      async provoke() {
        server.freeze();
        const asked = Promise.all(Array.from({ length: 20 }, work));
        const since = performance.now();
        await eventually(() => performance.now() > since + FROZEN_MS, "they wait");
        server.thaw();
        await asked;
      },
      cure: async () => {
        for (let n = 0; n < 100; n += 1) await work();
      },
    },
    WaybillWebhooksFailing: {
      async provoke() {
        await send(10);
        await eventually(async () => (await overview()).webhooks.failingEndpoints > 0, "it fails");
      },
      cure: work,
    },
    WaybillClickhouseUnavailable: {
      async provoke() {
        await pileUp();
        await eventually(async () => {
          const failures = [...(await read())].filter(([name]) => AWAY.test(name));
          return failures.some(([, count]) => count > 0);
        }, "a part waits for ClickHouse");
      },
      cure: drainLog,
    },
    WaybillBenchmarksFailing: {
      async provoke() {
        await clickhouse.kill();
        const body = { apiKey: "key_acme_main" };
        const { token } = (await request("POST", `${product.api}/v2/auth/token`, body)).body;
        const question = { destCap: "00118", weight: 2, couriers: ["GLS_ITA"] };
        const headers = { authorization: `Bearer ${token}` };
        const url = `${product.api}/v2/couriers/delivery-times`;
        await request("POST", url, question, headers);
      },
      cure: () => clickhouse.restart(),
    },
    WaybillLag: { provoke: pileUp, cure: drainLog, isGrowing: true },
    WaybillLogFilling: { provoke: pileUp, cure: drainLog, isGrowing: true },
    WaybillDeadLetters: {
      async provoke() {
        await server.send("XADD", FIRST_LOG, "*", "what", "is no event");
        await eventually(() => isCounted(DEAD), "it is a dead letter", 60_000);
      },
      cure: work,
    },
    WaybillAlertMailsFailing: {
      async provoke() {
        await askPanel(product, "POST", "/clock", { advanceSeconds: DAY_SECONDS });
        await eventually(() => isCounted(MAILS), "a mail cannot be sent", 60_000);
      },
      cure: work,
    },
    WaybillLedgerDifference: {
      provoke: () => server.send("HINCRBY", LEDGER, "received:GLS_ITA", "1"),
      cure: () => server.send("HINCRBY", LEDGER, "received:GLS_ITA", "-1"),
    },
    WaybillInternalErrors: {
      // What no process of ours ever writes there.
      provoke: async () => {
        const key = retriesKey(FIRST_LOG, "track");
        await server.send("SET", key, "not a queue");
        await eventually(() => isCounted(INTERNAL), "it is noticed");
      },
      cure: () => server.send("DEL", retriesKey(FIRST_LOG, "track")),
    },
    WaybillOpenFiles: {
      async provoke() {
        const { hostname, port } = new URL(product.api);
        sockets = Array.from({ length: 880 }, () =>
          connect(Number(port), hostname).on("error", () => {}),
        );
        await eventually(
          () => sockets.every(({ readyState }) => readyState === "open"),
          "they are open",
        );
      },
      cure: async () => {
        for (const socket of sockets) socket.destroy();
      },
    },
    WaybillDown: { provoke: () => product.kill(false), cure: () => product.start() },
  };
  /** Its series as Prometheus would have collected them. */
  function seriesOf({ well, trouble, cured, tookSeconds }: Readings, isGrowing: boolean) {
    const names = new Set([...well.keys(), ...trouble.keys(), ...cured.keys()]);
    return [...names].map((name) => {
      const [first, second, third] = [well, trouble, cured].map((reading) => reading.get(name));
      const isGauge = !/_total|_bucket|_count|_sum/.test(name);
      const text = (value: number | undefined) => (value === undefined ? "_" : String(value));
      const values = [...Array(WELL).fill(text(first))];
      const grown = (second ?? 0) - (first ?? 0);
      for (let n = 1; n <= IN_TROUBLE; n += 1) {
        if (isGrowing && name.startsWith("waybill_group_lag_")) {
          values.push(String((first ?? 0) + (n * 60 * grown) / tookSeconds));
        } else
          values.push(
            isGauge || second === undefined ? text(second) : text((first ?? 0) + n * grown),
          );
      }
      const last = (first ?? 0) + IN_TROUBLE * grown;
      const after = (third ?? 0) - (second ?? 0);
      for (let n = 1; n <= CURED; n += 1) {
        values.push(isGauge || third === undefined ? text(third) : text(last + n * after));
      }
      return { series: name, values: values.join(" ") };
    });
  }

  /** How many are firing at the end of each of the three times. */
  async function firing(alert: string, readings: Readings, isGrowing: boolean) {
    const instants = [WELL - 1, WELL + IN_TROUBLE - 1, WELL + IN_TROUBLE + CURED - 1];
    const judge = async (counts: readonly number[]) => {
      const file = {
        rule_files: [resolve(RULES_FILE)],
        evaluation_interval: "1m",
        tests: [
          {
            interval: "1m",
            input_series: seriesOf(readings, isGrowing),
            promql_expr_test: instants.map((minutes, at) => ({
              expr: `count(ALERTS{alertname="${alert}",alertstate="firing"}) > bool 0 or vector(0)`,
              eval_time: `${minutes}m`,
              exp_samples: [{ labels: "{}", value: counts[at] }],
            })),
          },
        ],
      };
      const path = join(folder, "test.yaml");
      await Bun.write(path, JSON.stringify(file));
      const child = Bun.spawn([promtool ?? "", "test", "rules", path], {
        stdout: "pipe",
        stderr: "pipe",
      });
      const [output, errors] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
      ]);
      return (await child.exited) === 0 ? "" : output + errors;
    };
    return judge([0, 1, 0]);
  }

  test("each is silent while all is well, fires in its trouble and clears when it is cured", async () => {
    const measuring = startMeasuring("Alarms", NAME);
    const wrong: string[] = [];
    const chosen = rules.filter(({ alert }) => IS_MEASURED || SHORT_FORM.includes(alert));
    let cured = await readAfresh();
    for (const { alert } of chosen) {
      const provocation = PROVOKED[alert];
      if (!provocation) continue;
      const well = cured;
      const fromMs = performance.now();
      await provocation.provoke();
      const trouble = await readAfresh();
      const tookSeconds = (performance.now() - fromMs) / 1_000;
      await provocation.cure();
      cured = await readAfresh();
      const fault = await firing(
        alert,
        { well, trouble, cured, tookSeconds },
        provocation.isGrowing ?? false,
      );
      if (fault !== "") wrong.push(`${alert}: ${fault}`);
    }
    expect(wrong).toEqual([]);
    const all = [...Object.keys(PROVOKED), ...Object.keys(NOT_HERE)];
    expect(all.toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted());
    const fired = Object.keys(PROVOKED).length;
    await measuring.done({ faults: fired, further: { "rules in all": rules.length } });
  }, 300_000);
});
