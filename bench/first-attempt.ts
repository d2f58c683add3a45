/**
 * From an event's message to the first attempt of its webhook at 1,000 events/s (issue 9, row 6): `bun
 * bench/first-attempt.ts [--seconds 30] [--quick] [--json]`. Ingest and processors are processes of their own on an embedded
 * Redis as shipped; events come as signed HTTP messages of 50, every one becomes a delivery to one endpoint or two. The clock
 * runs from the sending of the message, here, to the arrival at the receiver, on the same machine; the first seconds, in
 * which the processes warm up, are sent and not counted.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { type Store, startIngest, startRole } from "#bench/product-roles.ts";
import { type Receivers, startReceivers } from "#bench/start-receivers.ts";
import { type Figure, machine, percentile, print, redisVersion } from "#bench/table.ts";
import { readConfig } from "#core/config.ts";
import type { SetupFile } from "#core/domain/setup/setup.ts";
import { sign } from "#core/domain/webhooks/signature.ts";
import { createLog } from "#core/log.ts";
import { applySetupFile, openRuntime } from "#core/runtime.ts";
import { eventually } from "#test/support/eventually.ts";
import { testSetup, WEBHOOK_SECRET } from "#test/support/setup.ts";
import { addShipment } from "#test/support/shipments.ts";

const COMPANIES = 48;
const SHIPMENTS = 2_000;
const EVENTS_PER_MESSAGE = 50;
const MESSAGE_GAP_MS = 50;
const PER_SECOND = (EVENTS_PER_MESSAGE * 1_000) / MESSAGE_GAP_MS;
const ARRIVAL_LIMIT_MS = 60_000;
const GOAL_MS = 500;
/** What CI fails at. */
const ALARM_MS = 3_000;
const [TOKEN, SECRET] = ["tok_gls_1", "sig_gls_1"];

const { values } = parseArgs({
  options: {
    seconds: { type: "string" },
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const seconds = Number(values.seconds ?? (values.quick ? 4 : 30));
const WARM_UP_SECONDS = values.quick ? 2 : 5;

/** Every other channel has a second endpoint. */
function attemptSetup({ urlOf }: Receivers): SetupFile {
  const companies = Array.from({ length: COMPANIES }, (_, n) => ({
    code: `company-${n}`,
    channels: [
      {
        code: `channel-${n}`,
        couriers: [{ code: "GLS_ITA" }],
        webhooks: [2 * n, 2 * n + 1].slice(0, 1 + (n % 2)).map((receiver) => ({
          ...{ code: `hook-${receiver}`, url: urlOf(receiver), trigger: "every_event" as const },
          ...{ alertEmail: "ops@bench.test", secret: WEBHOOK_SECRET },
        })),
      },
    ],
  }));
  const couriers = (testSetup().couriers ?? []).map((courier) => ({
    ...courier,
    rateLimit: { perSecond: 100_000, burst: 1_000_000 },
  }));
  return { ...testSetup(), couriers, companies };
}

async function openStore(receivers: Receivers): Promise<Store> {
  const dataDir = await mkdtemp(join(tmpdir(), "waybill-bench-"));
  const env = {
    ...{ DATA_DIR: dataDir, LOG_LEVEL: "error", PANEL_TOKEN: "panel-token-of-the-measurements" },
    WEBHOOK_ALLOWED_CIDRS: "127.0.0.0/8,::1/128",
    WEBHOOK_CA_FILE: receivers.caFile,
    PATH: dirname(Bun.which("redis-server") ?? ""),
  };
  const runtime = await openRuntime(readConfig(env), createLog("error"));
  await applySetupFile(runtime, attemptSetup(receivers));
  for (let n = 0; n < SHIPMENTS; n += 1) {
    await addShipment(runtime, `BENCH-${n}`, { channel: `channel-${n % COMPANIES}` });
  }
  return {
    runtime,
    env,
    async close() {
      await runtime.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** The number of an event is its text, and so the text of its webhook's fact. */
function messageOf(first: number): Uint8Array<ArrayBuffer> {
  const events = Array.from({ length: EVENTS_PER_MESSAGE }, (_, at) => ({
    eventId: `bench-${first + at}`,
    trackingNumber: `BENCH-${(first + at) % SHIPMENTS}`,
    occurredAt: new Date(Date.UTC(2026, 10, 10) + (first + at) * 1_000).toISOString(),
    status: { code: "TRN", description: String(first + at) },
    location: { name: "Hub Milano Sesto San Giovanni", countryCode: "IT", postalCode: "20099" },
  }));
  const envelope = { schemaVersion: "1.0", messageId: `m-${first}`, courier: "GLS_ITA", events };
  return Buffer.from(JSON.stringify({ ...envelope, sentAt: new Date().toISOString() }));
}

async function post(url: string, body: Uint8Array<ArrayBuffer>): Promise<void> {
  const headers = {
    authorization: `Bearer ${TOKEN}`,
    "content-type": "application/json",
    "x-service-signature": sign([SECRET], body, Date.now()),
  };
  const response = await fetch(`${url}/v1/events`, { method: "POST", body, headers });
  const text = await response.text();
  if (!text.includes(`"accepted":${EVENTS_PER_MESSAGE}`)) throw new Error(text.slice(0, 300));
}

/** Sends at its pace whatever becomes of the messages. @returns when each was sent, UTC milliseconds */
async function sendAll(url: string, messages: number): Promise<number[]> {
  const sentMs: number[] = [];
  const posts: Promise<void>[] = [];
  const startMs = Date.now();
  for (let n = 0; n < messages; n += 1) {
    await Bun.sleep(Math.max(0, startMs + n * MESSAGE_GAP_MS - Date.now()));
    const body = messageOf(n * EVENTS_PER_MESSAGE);
    sentMs.push(Date.now());
    posts.push(post(url, body));
  }
  await Promise.all(posts);
  return sentMs;
}

/** @returns milliseconds from the sending to the first arrival, for every event after the warm-up */
async function measure(url: string, receivers: Receivers): Promise<number[]> {
  const messages = ((seconds + WARM_UP_SECONDS) * PER_SECOND) / EVENTS_PER_MESSAGE;
  const sentMs = await sendAll(url, messages);
  const arrivedMs = new Map<number, number>();
  const isDone = async () => {
    const arrivals = await receivers.arrivals();
    for (let at = 0; at < arrivals.length; at += 2) {
      const [event = 0, atMs = 0] = arrivals.slice(at, at + 2);
      arrivedMs.set(event, Math.min(atMs, arrivedMs.get(event) ?? atMs));
    }
    return arrivedMs.size === messages * EVENTS_PER_MESSAGE;
  };
  await eventually(isDone, "every event's webhook arrives", ARRIVAL_LIMIT_MS);
  return [...arrivedMs]
    .filter(([event]) => event >= WARM_UP_SECONDS * PER_SECOND)
    .map(([event, atMs]) => atMs - (sentMs[Math.floor(event / EVENTS_PER_MESSAGE)] ?? 0));
}

const receivers = await startReceivers(2 * COMPANIES);
const store = await openStore(receivers);
const ingest = await startIngest(store);
const processors = startRole("processors", "processors/main.ts", store.env);
try {
  const tookMs = await measure(ingest.url, receivers);
  const figure = (share: number): Figure => ({
    row: 6,
    work: `received -> first webhook attempt at ${PER_SECOND.toLocaleString("en")} events/s, p${share * 100}`,
    ...{ ours: percentile(tookMs, share), beside: null, peer: null, unit: "ms" },
    ...(share === 0.95
      ? { goal: { oursMost: GOAL_MS }, alarm: { oursMost: ALARM_MS } }
      : { goal: null }),
  });
  const version = await redisVersion(store.runtime.redis);
  print([0.5, 0.95, 0.99].map(figure), `${machine(version)}, ${seconds} s`, values.json);
} finally {
  await Promise.all([ingest.stop(), processors.stop()]);
  await store.close();
  await receivers.stop();
}
