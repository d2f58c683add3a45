/**
 * What an event costs as shipments grow (row 14): `bun bench/growth.ts [--shipments 10k,100k,1m,5m] [--events 60000]
 * [--everysec] [--json]`. Every size has processes and a Redis of its own, is warmed up, and is given the same events, of 10,000
 * shipments spread evenly over all: first the whole way of row 4, then event log to state as in row 3. Costs are CPU time, since the sender shares the machine. 5m takes some 15 GB of memory and a quarter of an
 * hour, most of it for putting the shipments there.
 */
import { freemem } from "node:os";
import { parseArgs } from "node:util";
import { type Figure, machine, print, redisVersion } from "#bench/table.ts";
import { startConsumer } from "#core/platform/log/consumer.ts";
import { readLags } from "#core/platform/log/streams.ts";
import { CHANGE_LOGS } from "#core/platform/redis/keys.ts";
import { readLedger } from "#core/webhooks/store/deliveries/ledger.ts";
import { EVENTS_AT_ONCE } from "#processors/main.ts";
import { trackHandler } from "#processors/track/track.ts";
import { eventually } from "#test/support/eventually.ts";
import type { Population } from "./event-life.ts";
import type { Cost, Size } from "./growth-chart.ts";
import { loadShipments } from "./load-shipments.ts";
import {
  type Costs,
  costsBetween,
  costsText,
  cpuSeconds,
  openStore,
  type Role,
  type Store,
  startIngest,
  startRole,
  tell,
  totalOf,
} from "./product-roles.ts";
import { runSustained } from "./sustained-run.ts";

const { values } = parseArgs({
  options: {
    shipments: { type: "string", default: "10k,100k,1m,5m" },
    events: { type: "string", default: "60000" },
    /** A child of ours: one size. */
    size: { type: "string" },
    everysec: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const EVENTS = values.quick ? 10_000 : Number(values.events);
const WARM_UP = Math.ceil(EVENTS / 3_000) * 1_000;
const ACTIVE = 10_000;
const RUN_LIMIT_SECONDS = 300;
/** Of the machine's memory, with what is copied while the append-only file is written. */
const BYTES_PER_SHIPMENT = 3_000;

function numberOf(text: string): number {
  const [, digits = "0", unit = ""] = /^(\d+)([km]?)$/i.exec(text) ?? [];
  return Number(digits) * ({ k: 1_000, m: 1_000_000 }[unit.toLowerCase()] ?? 1);
}

function costOf(costs: Costs, perSecond: number): Cost {
  const { redis: redisUs = 0 } = costs;
  return { perSecond, redisUs, ownUs: totalOf(costs) - redisUs };
}

async function measureSize(store: Store, shipments: number): Promise<Size> {
  const { runtime, env } = store;
  if (freemem() < shipments * BYTES_PER_SHIPMENT) throw new Error("not enough memory is free");
  const empty = await usedBytes(store);
  const startMs = performance.now();
  await loadShipments(runtime, env, shipments);
  const bytesPerShipment = ((await usedBytes(store)) - empty) / shipments;
  const seconds = Math.round((performance.now() - startMs) / 1_000);
  tell(`${shipments} shipments: ${seconds} s, ${Math.round(bytesPerShipment)} bytes each`);
  const population = { shipments, active: ACTIVE, underway: ACTIVE };
  const ingest = await startIngest(store);
  const wholeWay = await measureWholeWay(store, ingest, population);
  const toState = await measureToState(store, ingest, population, WARM_UP + EVENTS);
  await ingest.stop();
  return { shipments, bytesPerShipment, wholeWay, toState };
}

async function usedBytes({ runtime: { redis } }: Store): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await redis.info("memory"))?.[1]);
}

type Ingest = Role & { readonly url: string };

async function measureWholeWay(store: Store, ingest: Ingest, population: Population) {
  const { redis } = store.runtime;
  const others = ["analytics", "processors"].map((name) =>
    startRole(name, `${name}/main.ts`, store.env),
  );
  const roles = [ingest, ...others];
  const send = (from: number, limit: number) =>
    runSustained({
      url: ingest.url,
      population,
      from,
      limit,
      seconds: RUN_LIMIT_SECONDS,
      behind: () => readLags(redis),
    });
  await send(0, WARM_UP);
  const before = await cpuSeconds(redis, roles);
  const { events, seconds } = await send(WARM_UP, EVENTS);
  const costs = costsBetween(before, await cpuSeconds(redis, roles), events);
  tell(`  whole way: ${Math.round(events / seconds)} events/s, ${costsText(costs)}`);
  for (const role of others) await role.stop();
  return costOf(costs, events / seconds);
}

/** The consumer as `processors/main.ts` starts it, in this process, on a log that ingest has filled. */
async function measureToState(store: Store, ingest: Ingest, population: Population, from: number) {
  const { redis } = store.runtime;
  const fill = (at: number, limit: number) =>
    runSustained({
      url: ingest.url,
      population,
      from: at,
      limit,
      seconds: RUN_LIMIT_SECONDS,
      behind: async () => [],
    });
  await fill(from, WARM_UP);
  await workOff(store, WARM_UP);
  await fill(from + WARM_UP, EVENTS);
  const own: Role = {
    name: "track",
    pid: process.pid,
    hasEnded: () => false,
    stop: async () => {},
  };
  const before = await cpuSeconds(redis, [own]);
  const startMs = performance.now();
  await workOff(store, EVENTS);
  const perSecond = (EVENTS * 1_000) / (performance.now() - startMs);
  const costs = costsBetween(before, await cpuSeconds(redis, [own]), EVENTS);
  tell(`  event log to state: ${Math.round(perSecond)} events/s, ${costsText(costs)}`);
  return costOf(costs, perSecond);
}

async function workOff({ runtime }: Store, events: number): Promise<void> {
  const { redis, log, live, config } = runtime;
  const { applied } = await readLedger(redis);
  const handle = trackHandler({ redis, live, eventsPerDay: config.eventsPerDay });
  let left = events;
  const consumer = startConsumer({
    redis,
    log,
    source: "event",
    group: "track",
    batch: EVENTS_AT_ONCE,
    async handler(entries) {
      const failures = await handle(entries);
      left -= entries.length - failures.length;
      return failures;
    },
  });
  await eventually(() => left <= 0, "the log is worked off", RUN_LIMIT_SECONDS * 1_000);
  await consumer.stop();
  const found = (await readLedger(redis)).applied - applied;
  if (found !== events) throw new Error(`${found} of ${events} events were applied`);
  for (const key of CHANGE_LOGS) await redis.xTrim(key, "MAXLEN", 0);
}

async function runSize(shipments: number): Promise<void> {
  const store = await openStore(values.everysec);
  try {
    const size = await measureSize(store, shipments);
    const about = machine(await redisVersion(store.runtime.redis));
    process.stdout.write(`${JSON.stringify({ size, about })}\n`);
  } finally {
    await store.close();
  }
}

async function runAll(): Promise<void> {
  const wanted = values.quick ? "10k,20k" : values.shipments;
  const sizes: Size[] = [];
  let about = "";
  for (const text of wanted.split(",")) {
    const flags = ["--size", String(numberOf(text)), "--events", String(EVENTS)];
    if (values.everysec) flags.push("--everysec");
    const child = Bun.spawn([process.execPath, import.meta.path, ...flags], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const lines = (await new Response(child.stdout).text()).trim().split("\n");
    if ((await child.exited) !== 0) throw new Error(`${text} shipments: failed`);
    const report: { size: Size; about: string } = JSON.parse(lines.at(-1) ?? "");
    sizes.push(report.size);
    about = report.about;
  }
  print(figuresOf(sizes), about, values.json);
}

/** Cost at the largest size beside the cost at the smallest: 1 is none, and what linear growth is, the work says. */
function figuresOf(sizes: readonly Size[]): Figure[] {
  const [first, last] = [sizes[0], sizes.at(-1)];
  if (!first || !last) throw new Error("no sizes");
  const [few, many] = [first, last].map(({ shipments }) => shipments.toLocaleString("en"));
  const times = Math.round(last.shipments / first.shipments);
  const figure = (work: string, part: "wholeWay" | "toState"): Figure => ({
    row: 14,
    work: `${work}, ${many} shipments (linear: x ${times})`,
    unit: "CPU us/event",
    ours: last[part].redisUs + last[part].ownUs,
    beside: `${few} shipments`,
    peer: first[part].redisUs + first[part].ownUs,
    goal: { most: 1.5 },
    alarm: { most: 3 },
  });
  return [
    figure("event log to state", "toState"),
    { ...figure("end to end", "wholeWay"), growth: sizes },
  ];
}

if (values.size === undefined) await runAll();
else await runSize(Number(values.size));
