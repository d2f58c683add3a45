/**
 * Event log to shipment state beside what limits it (row 3): `bun bench/track.ts [--shipments 1000000] [--runs 5]
 * [--everysec] [--quick] [--json]`, and `--cpu` for the CPU time of both processes. Ours is the consumer with its handler as
 * `processors/main.ts` starts them, on a log that the claim script has filled. Beside it stand the same calls of the commit
 * script with their arguments prepared beforehand: nothing is read, mapped, folded, packed or acknowledged.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { machine, median, print, redisVersion } from "#bench/table.ts";
import type { CourierEvent } from "#core/events/rules/event.ts";
import { claimEvents, encodeLoggedEvent } from "#core/events/store/event-log.ts";
import { seenBucket, seenLayout } from "#core/events/store/seen.ts";
import { readConfig } from "#core/platform/environment/config.ts";
import { type LogItem, startConsumer } from "#core/platform/log/consumer.ts";
import { createLog } from "#core/platform/process/log.ts";
import { type Redis, run } from "#core/platform/redis/client.ts";
import { CHANGE_LOGS, companyKeys, PARTITIONS } from "#core/platform/redis/keys.ts";
import { applySetupFile, openRuntime, type Runtime } from "#core/runtime/runtime.ts";
import type { SetupFile } from "#core/setup/rules/setup.ts";
import { prepareShipment } from "#core/shipments/rules/new-shipment.ts";
import { creationContext } from "#core/shipments/store/create-items.ts";
import { createShipments } from "#core/shipments/store/create-shipments.ts";
import { registerShipments } from "#core/shipments/store/register-shipments.ts";
import { commitScript } from "#core/shipments/store/shipments.ts";
import { EVENTS_AT_ONCE } from "#processors/main.ts";
import { trackHandler } from "#processors/track/track.ts";
import { testSetup } from "#test/support/data/setup.ts";

const { values } = parseArgs({
  options: {
    shipments: { type: "string" },
    runs: { type: "string" },
    everysec: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    cpu: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const SHIPMENTS = Number(values.shipments ?? (values.quick ? 20_000 : 1_000_000));
const RUNS = Number(values.runs ?? (values.quick ? 3 : 5));

/** As many as there are partitions, with one channel each. */
const COMPANIES = 16;
const COURIER = "GLS_ITA";
const CREATED_AT_ONCE = 1_000;
const COMPANIES_AT_ONCE = 4;
/** Under way while it is measured; the others are there. */
const ACTIVE = Math.min(100_000, SHIPMENTS / 2);
/** Each parcel is drawn once in a run. */
const EVENTS_PER_RUN = Math.min(values.quick ? 10_000 : 50_000, ACTIVE / 2);
const PRELOADED_AT_ONCE = 1_000;
/** Every fourth event comes with three others of its shipment; the rest alone. */
const TOGETHER = 4;
const STEPS = ["INF", "DEP", "TRN", "TRN", "HLD", "TRN", "OUT", "DLV"] as const;
const HUBS = ["Hub Milano Sesto San Giovanni", "Hub Bologna Interporto", "Filiale Roma Est"];
const FIRST_EVENT_MS = Date.parse("2026-11-10T08:00:00Z");
const HOUR_MS = 3_600_000;
const HIGH_WATER = 100_000_000;

interface Parcel {
  readonly id: number;
  readonly trackingNumber: string;
  /** Events it has had. */
  step: number;
}

function setup(): SetupFile {
  const [company] = testSetup().companies ?? [];
  const channel = company?.channels?.[0];
  if (!company || !channel) throw new Error("no channel");
  const companies = Array.from({ length: COMPANIES }, (_, n) => {
    const apiKeys = [{ code: "main", key: `key_of_company_${n}` }];
    return { ...company, code: `c${n}`, channels: [{ ...channel, code: `c${n}`, apiKeys }] };
  });
  return { ...testSetup(), companies };
}

/** Through the product's own code, with references, indices and rows. */
async function load({ redis, live }: Runtime): Promise<Parcel[]> {
  const codes = Array.from({ length: COMPANIES }, (_, n) => `c${n}`);
  const perCompany = Math.ceil(SHIPMENTS / COMPANIES);
  const active: Parcel[] = [];
  const loadCompany = async (code: string) => {
    const channel = live.configuration().channelByCode.get(code);
    if (!channel) throw new Error("no channel");
    const context = creationContext(live.configuration(), channel);
    for (let from = 0; from < perCompany; from += CREATED_AT_ONCE) {
      const count = Math.min(CREATED_AT_ONCE, perCompany - from);
      const ready = Array.from({ length: count }, (_, n) => {
        const prepared = prepareShipment(shipmentOf(code, from + n), context, live.now());
        if (prepared.kind === "rejected") throw new Error(JSON.stringify(prepared.errors));
        return prepared;
      });
      const ids = (await createShipments(redis, channel.companyId, ready)).map(({ id }) => id);
      await registerShipments(redis, live.configuration(), ids);
      await redis.xTrim(companyKeys(channel.companyId % PARTITIONS).changes, "MAXLEN", 0);
      for (const [at, id] of ids.entries()) {
        const isActive = Math.random() < ACTIVE / SHIPMENTS;
        if (isActive) active.push({ id, trackingNumber: `${code}-${from + at}`, step: 0 });
      }
    }
  };
  const worker = async () => {
    for (let code = codes.pop(); code !== undefined; code = codes.pop()) await loadCompany(code);
  };
  await Promise.all(Array.from({ length: COMPANIES_AT_ONCE }, worker));
  return active;
}

function shipmentOf(code: string, n: number) {
  return {
    trackingNumber: `${code}-${n}`,
    courier: COURIER,
    shipDate: `2026-${String(1 + (n % 11)).padStart(2, "0")}-${String(1 + (n % 28)).padStart(2, "0")}`,
    orderReference: `IT-2026-${n}`,
    consignee: {
      name: `Mario Rossi ${n % 977}`,
      street: `Via Giuseppe Garibaldi ${1 + (n % 240)}`,
      city: "Roma",
      postcode: "00118",
      country: "IT",
    },
    parcels: [{ weight: 1 + (n % 50) / 10, boxCode: "S" }],
    orderItems: [{ sku: `SKU-${n % 977}`, name: "Maglietta girocollo", quantity: 1, price: 19.9 }],
  };
}

/** The next event of a parcel, of about 570 bytes like those of row 1. */
function eventOf(parcel: Parcel): CourierEvent & { eventId: string } {
  const { trackingNumber, step } = parcel;
  parcel.step += 1;
  const code = STEPS[step] ?? "TRN";
  const atMs = FIRST_EVENT_MS + step * 7 * HOUR_MS + (parcel.id % 5) * HOUR_MS;
  return {
    eventId: `bench-${parcel.id}-${step}-${code}`,
    trackingNumber,
    occurredAt: `${new Date(atMs + HOUR_MS).toISOString().slice(0, 19)}+01:00`,
    status: { code, description: `${code} In transito verso la filiale di destinazione` },
    location: { name: HUBS[step % HUBS.length] ?? "", countryCode: "IT", postalCode: "20099" },
    parcel: { trackingNumber: `${trackingNumber}-01`, index: 1, total: 1 },
    reason: { code: "R00", description: "Nessuna anomalia" },
    delivery: { estimatedDeliveryDate: "2026-11-12", attemptNumber: 1 },
    attributes: { depot: "MI2", van: "17", route: "Sesto-Monza", scanner: "SC-000123" },
  };
}

interface Accepted {
  readonly seen: ReturnType<typeof seenBucket>;
  readonly entry: string;
}

/** Events of one call stand in one log, so that the consumer commits them together, as the prepared calls do. */
function acceptedEvents(parcel: Parcel, count: number): Accepted[] {
  const events: Accepted[] = [];
  for (let messageIndex = 0; messageIndex < count; messageIndex += 1) {
    const event = eventOf(parcel);
    let seen = seenBucket(COURIER, event.eventId);
    for (let n = 0; seen.partition !== (events[0]?.seen ?? seen).partition; n += 1) {
      seen = seenBucket(COURIER, `${event.eventId}-${n}`);
      if (seen.partition === events[0]?.seen.partition) event.eventId += `-${n}`;
    }
    const logged = {
      shipmentId: parcel.id,
      courier: COURIER,
      factKey: seen.factKey,
      messageIndex,
      event,
    };
    events.push({ seen, entry: encodeLoggedEvent({ ...logged, receivedAtMs: Date.now() }) });
  }
  return events;
}

function entriesOf(events: readonly Accepted[]): LogItem[] {
  return events.map(({ entry }, at) => ({ key: "{e0}:log", id: `${at}-0`, fields: { e: entry } }));
}

/** Of shipments drawn without repetition. */
function chosen(active: readonly Parcel[]): Accepted[] {
  const events: Accepted[] = [];
  const drawn = new Set<Parcel>();
  while (events.length < EVENTS_PER_RUN) {
    const parcel = active[Math.floor(Math.random() * active.length)];
    if (!parcel) throw new Error("no shipments");
    if (drawn.has(parcel)) continue;
    drawn.add(parcel);
    const isGroup = Math.random() < 1 / (3 * TOGETHER + 1);
    events.push(...acceptedEvents(parcel, isGroup ? TOGETHER : 1));
  }
  return events;
}

/** Active shipments have had 0 to 7 events. */
async function preload(runtime: Runtime, active: readonly Parcel[]): Promise<number> {
  const handle = trackHandler({ ...runtime, eventsPerDay: runtime.config.eventsPerDay });
  let count = 0;
  for (let from = 0; from < active.length; from += PRELOADED_AT_ONCE) {
    const part = active.slice(from, from + PRELOADED_AT_ONCE);
    const events = part.flatMap((parcel) => acceptedEvents(parcel, parcel.id % STEPS.length));
    const failures = await handle(entriesOf(events));
    if (failures.length > 0) throw new Error(failures[0]?.reason);
    count += events.length;
    await emptyChangeLogs(runtime.redis);
  }
  return count;
}

async function emptyChangeLogs(redis: Redis): Promise<void> {
  for (const log of CHANGE_LOGS) await redis.xTrim(log, "MAXLEN", 0);
}

/** Fills the event logs as ingest does. */
async function append({ redis, config }: Runtime, events: readonly Accepted[]): Promise<void> {
  const layout = await seenLayout(redis, Date.now(), config.eventsPerDay);
  for (let from = 0; from < events.length; from += PRELOADED_AT_ONCE) {
    const part = events.slice(from, from + PRELOADED_AT_ONCE);
    const terms = { layout, highWater: HIGH_WATER, courier: COURIER, nowMs: Date.now() };
    const outcomes = await claimEvents(redis, terms, part);
    if (outcomes.some((one) => one !== "claimed")) throw new Error("an event was not claimed");
  }
}

interface Cost {
  readonly perSecond: number;
  /** CPU microseconds an event. */
  readonly ownUs: number;
  readonly redisUs: number;
}

async function redisCpuUs(redis: Redis): Promise<number> {
  const info = await redis.info("cpu");
  const seconds = (name: string) => Number(new RegExp(`${name}:([\\d.]+)`).exec(info)?.[1] ?? 0);
  return (seconds("used_cpu_user_main_thread") + seconds("used_cpu_sys_main_thread")) * 1e6;
}

async function costOf(redis: Redis, events: number, work: () => Promise<void>): Promise<Cost> {
  Bun.gc(true);
  const redisBefore = await redisCpuUs(redis);
  const before = process.cpuUsage();
  const start = performance.now();
  await work();
  const seconds = (performance.now() - start) / 1_000;
  const { user, system } = process.cpuUsage(before);
  const redisUs = ((await redisCpuUs(redis)) - redisBefore) / events;
  return { perSecond: events / seconds, ownUs: (user + system) / events, redisUs };
}

async function ours(runtime: Runtime, events: readonly Accepted[]): Promise<Cost> {
  const { redis, log, config } = runtime;
  await append(runtime, events);
  const handle = trackHandler({ ...runtime, eventsPerDay: config.eventsPerDay });
  return costOf(redis, events.length, async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    let left = events.length;
    const consumer = startConsumer({
      redis,
      log,
      source: "event",
      group: "track",
      batch: EVENTS_AT_ONCE,
      async handler(entries) {
        const failures = await handle(entries);
        left -= entries.length - failures.length;
        if (left <= 0) resolve();
        return failures;
      },
    });
    await promise;
    await consumer.stop();
  });
}

interface Call {
  readonly keys: string[];
  readonly args: Array<string | Buffer>;
}

/** Longer than any call's reply has to be. */
const COMMITTED = new Array(1_000).fill(0);

/** The commit calls that the handler would make for every batch, not made. */
async function prepared(runtime: Runtime, events: readonly Accepted[]): Promise<Call[][]> {
  let calls: Call[] = [];
  const recording = new Proxy(runtime.redis, {
    get(redis, name) {
      if (name === "evalSha") {
        return (sha: string, options: { keys: string[]; arguments: Call["args"] }) => {
          if (sha !== commitScript.sha) return redis.evalSha(sha, options);
          calls.push({ keys: options.keys, args: options.arguments });
          return COMMITTED;
        };
      }
      const member = Reflect.get(redis, name);
      return typeof member === "function" ? member.bind(redis) : member;
    },
  });
  const { eventsPerDay } = runtime.config;
  const handle = trackHandler({ ...runtime, redis: recording, eventsPerDay });
  const batches: Call[][] = [];
  // Events of one shipment must meet in one batch, since nothing of it is written in between.
  const groups = [...Map.groupBy(events, ({ entry }) => JSON.parse(entry)[0]).values()];
  let batch: Accepted[] = [];
  for (const [at, group] of groups.entries()) {
    batch.push(...group);
    if (batch.length < PARTITIONS * EVENTS_AT_ONCE && at < groups.length - 1) continue;
    await handle(entriesOf(batch));
    batches.push(calls);
    calls = [];
    batch = [];
  }
  return batches;
}

async function peer(runtime: Runtime, events: readonly Accepted[]): Promise<Cost> {
  const batches = await prepared(runtime, events);
  return costOf(runtime.redis, events.length, async () => {
    for (const calls of batches) {
      await Promise.all(
        calls.map(({ keys, args }) => run(runtime.redis, commitScript, keys, args)),
      );
    }
  });
}

/** @throws when an event was not applied, or twice */
async function balance({ redis }: Runtime, events: number): Promise<void> {
  let applied = 0;
  for (let n = 0; n < PARTITIONS; n += 1) {
    applied += Number(await redis.hGet(companyKeys(n).ledger, "applied"));
  }
  if (applied !== events) throw new Error(`${applied} of ${events} events were applied`);
}

async function measure(runtime: Runtime): Promise<{ ours: Cost[]; peer: Cost[] }> {
  const { redis } = runtime;
  const startMs = Date.now();
  await redis.configSet("appendfsync", "no");
  const active = await load(runtime);
  let count = await preload(runtime, active);
  await redis.configSet("appendfsync", values.everysec ? "everysec" : "always");
  tell(`loaded in ${Math.round((Date.now() - startMs) / 1_000)} s`);
  const costs = { ours: [] as Cost[], peer: [] as Cost[] };
  for (let round = 0; round <= RUNS; round += 1) {
    for (const [name, work] of Object.entries({ ours, peer })) {
      const events = chosen(active);
      count += events.length;
      const cost = await work(runtime, events);
      await emptyChangeLogs(redis);
      // The first round warms up.
      if (round > 0) costs[name as "ours" | "peer"].push(cost);
      tell(`${name} ${costText(cost)}`);
    }
  }
  await balance(runtime, count);
  return costs;
}

function costText({ perSecond, ownUs, redisUs }: Cost): string {
  return `${Math.round(perSecond)} events/s, CPU ${ownUs.toFixed(1)} us ours, ${redisUs.toFixed(1)} us Redis`;
}

function tell(text: string): void {
  if (values.cpu) process.stderr.write(`${text}\n`);
}

async function main(dataDir: string): Promise<void> {
  const env = { DATA_DIR: dataDir, EVENTS_PER_DAY: "1000000", LOG_LEVEL: "warn" };
  const runtime = await openRuntime(readConfig(env), createLog("warn"));
  try {
    await applySetupFile(runtime, setup());
    const costs = await measure(runtime);
    const perSecond = (of: readonly Cost[]) => median(of.map((one) => one.perSecond));
    const version = await redisVersion(runtime.redis);
    const fsync = values.everysec ? "everysec" : "always";
    const figure = {
      row: 3,
      work: `event log to shipment state, ${SHIPMENTS.toLocaleString("en")} shipments`,
      ours: perSecond(costs.ours),
      beside: "the bare commit script",
      peer: perSecond(costs.peer),
      unit: "events/s",
      goal: { least: 0.6 },
      alarm: { least: 0.12 },
    };
    print([figure], `${machine(version)}, appendfsync ${fsync}, medians of ${RUNS}`, values.json);
  } finally {
    await runtime.close();
  }
}

const dataDir = await mkdtemp(join(tmpdir(), "waybill-bench-"));
try {
  await main(dataDir);
} finally {
  await rm(dataDir, { recursive: true, force: true });
}
