/**
 * From an event's message to the first attempt of its webhook at 1,000 events/s (row 6) and at 100 (row 19): `bun
 * bench/first-attempt.ts [--seconds 30] [--quick] [--json]`. Ingest and processors are processes of their own on an embedded
 * Redis as shipped; events come as signed HTTP messages of 50 or 5, every one becomes a delivery to one endpoint or two. The clock
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
import { readConfig } from "#core/platform/environment/config.ts";
import { createLog } from "#core/platform/process/log.ts";
import { applySetupFile, openRuntime } from "#core/runtime/runtime.ts";
import type { SetupFile } from "#core/setup/rules/setup.ts";
import { sign } from "#core/webhooks/rules/signature.ts";
import { testSetup, WEBHOOK_SECRET } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";

const COMPANIES = 48;
const SHIPMENTS = 2_000;
const MESSAGE_GAP_MS = 50;
/** Events of a message, and the first number of an event; figures and their limits, milliseconds. */
const LOADS = [
  {
    row: 6,
    perMessage: 50,
    first: 0,
    figures: [{ share: 0.5 }, { share: 0.95, goalMs: 500, alarmMs: 3_000 }, { share: 0.99 }],
  },
  {
    row: 19,
    perMessage: 5,
    first: 500_000,
    figures: [
      { share: 0.5, goalMs: 15, alarmMs: 500 },
      { share: 0.99, goalMs: 60, alarmMs: 3_000 },
    ],
  },
] as const;
type Load = (typeof LOADS)[number];
const perSecond = ({ perMessage }: Load) => (perMessage * 1_000) / MESSAGE_GAP_MS;
const ARRIVAL_LIMIT_MS = 60_000;
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
          code: `hook-${receiver}`,
          url: urlOf(receiver),
          trigger: "every_event" as const,
          alertEmail: "ops@bench.test",
          secret: WEBHOOK_SECRET,
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
    DATA_DIR: dataDir,
    LOG_LEVEL: "error",
    PANEL_TOKEN: "panel-token-of-the-measurements",
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
function messageOf(first: number, length: number): Uint8Array<ArrayBuffer> {
  const events = Array.from({ length }, (_, at) => ({
    eventId: `bench-${first + at}`,
    trackingNumber: `BENCH-${(first + at) % SHIPMENTS}`,
    occurredAt: new Date(Date.UTC(2026, 10, 10) + (first + at) * 1_000).toISOString(),
    status: { code: "TRN", description: String(first + at) },
    location: { name: "Hub Milano Sesto San Giovanni", countryCode: "IT", postalCode: "20099" },
  }));
  const envelope = { schemaVersion: "1.0", messageId: `m-${first}`, courier: "GLS_ITA", events };
  return Buffer.from(JSON.stringify({ ...envelope, sentAt: new Date().toISOString() }));
}

async function post(url: string, body: Uint8Array<ArrayBuffer>, events: number): Promise<void> {
  const headers = {
    authorization: `Bearer ${TOKEN}`,
    "content-type": "application/json",
    "x-service-signature": sign([SECRET], body, Date.now()),
  };
  const response = await fetch(`${url}/v1/events`, { method: "POST", body, headers });
  const text = await response.text();
  if (!text.includes(`"accepted":${events}`)) throw new Error(text.slice(0, 300));
}

/** Sends at its pace whatever becomes of the messages. @returns when each was sent, UTC milliseconds */
async function sendAll(
  url: string,
  { first, perMessage }: Load,
  messages: number,
): Promise<number[]> {
  const sentMs: number[] = [];
  const posts: Promise<void>[] = [];
  const startMs = Date.now();
  for (let n = 0; n < messages; n += 1) {
    await Bun.sleep(Math.max(0, startMs + n * MESSAGE_GAP_MS - Date.now()));
    const body = messageOf(first + n * perMessage, perMessage);
    sentMs.push(Date.now());
    posts.push(post(url, body, perMessage));
  }
  await Promise.all(posts);
  return sentMs;
}

/** @returns milliseconds from the sending to the first arrival, for every event after the warm-up */
async function measure(url: string, receivers: Receivers, load: Load): Promise<number[]> {
  const { first, perMessage } = load;
  const messages = ((seconds + WARM_UP_SECONDS) * 1_000) / MESSAGE_GAP_MS;
  const events = messages * perMessage;
  const sentMs = await sendAll(url, load, messages);
  const arrivedMs = new Map<number, number>();
  const isDone = async () => {
    const arrivals = await receivers.arrivals();
    for (let at = 0; at < arrivals.length; at += 2) {
      const [event = 0, atMs = 0] = arrivals.slice(at, at + 2);
      // Deliveries to second endpoints of the load before may still arrive.
      if (event < first || event >= first + events) continue;
      arrivedMs.set(event, Math.min(atMs, arrivedMs.get(event) ?? atMs));
    }
    return arrivedMs.size === events;
  };
  await eventually(isDone, "every event's webhook arrives", ARRIVAL_LIMIT_MS);
  return [...arrivedMs]
    .map(([event, atMs]) => [event - first, atMs] as const)
    .filter(([event]) => event >= WARM_UP_SECONDS * perSecond(load))
    .map(([event, atMs]) => atMs - (sentMs[Math.floor(event / perMessage)] ?? 0));
}

const receivers = await startReceivers(2 * COMPANIES);
const store = await openStore(receivers);
const ingest = await startIngest(store);
const processors = startRole("processors", "processors/main.ts", store.env);
try {
  const figures: Figure[] = [];
  for (const load of LOADS) {
    const tookMs = await measure(ingest.url, receivers, load);
    const rate = perSecond(load).toLocaleString("en");
    for (const one of load.figures) {
      figures.push({
        row: load.row,
        work: `received -> first webhook attempt at ${rate} events/s, p${one.share * 100}`,
        ours: percentile(tookMs, one.share),
        beside: null,
        peer: null,
        unit: "ms",
        ...("goalMs" in one
          ? { goal: { oursMost: one.goalMs }, alarm: { oursMost: one.alarmMs } }
          : { goal: null }),
      });
    }
  }
  const version = await redisVersion(store.runtime.redis);
  print(figures, `${machine(version)}, ${seconds} s`, values.json);
} finally {
  await Promise.all([ingest.stop(), processors.stop()]);
  await store.close();
  await receivers.stop();
}
