/** Three times as many events as can be taken: the rest is told to come again, nothing that was accepted is lost. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdir, readFile, readlink } from "node:fs/promises";
import { event, push } from "#test/support/clients/courier.ts";
import { createShipments } from "#test/support/clients/event-stream.ts";
import { askPanel } from "#test/support/clients/operator.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { RUN_MS, startMeasuring } from "#test/support/measured.ts";
import { type Product, startProduct } from "#test/support/product/product.ts";

/** Half of the time is for the overload, five minutes of an hour's run, and half for the soak. */
const HALF_MS = Math.max(1_000, RUN_MS / 2);
/** For the search for the maximum. */
const SEARCH_MS = Math.max(1_000, RUN_MS / 30);
/** Grows with the run, so that each shipment gets about 30 events: with thousands on one, each event would cost more. */
const SHIPMENTS = Math.max(500, Math.ceil(RUN_MS / 4));
const PER_MESSAGE = 100;
/** Of the search for the maximum: senders without a pause. */
const SENDERS = 16;
const OVERLOAD = 3;
/** Messages that the overload has in flight at most. */
const IN_FLIGHT = 400;
const BACK_WITHIN_MS = 10_000;
const SAMPLE_MS = 5_000;
/** So that the event log fills within the run. */
const HIGH_WATER = 20_000;

let product: Product;
let number = 0;

beforeAll(async () => {
  const setup = testSetup();
  const gls = setup.couriers?.find(({ code }) => code === "GLS_ITA");
  Object.assign(gls ?? {}, { rateLimit: { perSecond: 100_000, burst: 1_000_000 } });
  product = await startProduct(setup, { LOG_HIGH_WATER: String(HIGH_WATER) });
  await createShipments(product, "LOAD", SHIPMENTS);
}, 600_000);

afterAll(() => product.end(), 300_000);

/** Of the sender: a message that was refused is sent again, as document 2 asks. */
const books = {
  /** Events of messages that were answered 200. */
  accepted: 0,
  refusals: 0,
  odd: [] as string[],
  latenciesMs: [] as number[],
};
/** First events of refused messages. */
const refused: number[] = [];

/** @returns whether the next message was accepted; one that was refused before comes first */
async function send(): Promise<boolean> {
  const again = refused.shift();
  const first = again ?? number;
  if (again === undefined) number += PER_MESSAGE;
  const events = Array.from({ length: PER_MESSAGE }, (_, at) =>
    event({ eventId: `load-${first + at}`, trackingNumber: `LOAD-${(first + at) % SHIPMENTS}` }),
  );
  const fromMs = performance.now();
  const { status, headers, body } = await push(product.ingest, events);
  books.latenciesMs.push(performance.now() - fromMs);
  if (status === 200) {
    books.accepted += body.accepted + body.duplicate;
    return true;
  }
  refused.push(first);
  books.refusals += 1;
  const isRight = [429, 503].includes(status) && Number(headers.get("retry-after")) > 0;
  if (!isRight) books.odd.push(`${status} ${JSON.stringify(body)}`);
  return false;
}

/** @returns events accepted in a second by senders without a pause */
async function findMaximum(): Promise<number> {
  const fromMs = performance.now();
  const before = books.accepted;
  const sender = async () => {
    while (performance.now() < fromMs + SEARCH_MS) {
      if (!(await send())) await Bun.sleep(100);
    }
  };
  await Promise.all(Array.from({ length: SENDERS }, sender));
  return ((books.accepted - before) * 1_000) / (performance.now() - fromMs);
}

/** Sends at a rate, whatever is answered. @returns events offered */
async function offer(perSecond: number, lastsMs: number, onTick = async () => {}): Promise<number> {
  const fromMs = performance.now();
  const flying = new Set<Promise<unknown>>();
  let offered = 0;
  while (performance.now() < fromMs + lastsMs) {
    const due = ((performance.now() - fromMs) / 1_000) * perSecond;
    while (offered + PER_MESSAGE <= due && flying.size < IN_FLIGHT) {
      const sent = send().finally(() => flying.delete(sent));
      flying.add(sent);
      offered += PER_MESSAGE;
    }
    await onTick();
    await Bun.sleep(5);
  }
  await Promise.all(flying);
  return offered;
}

async function overview() {
  return (await askPanel(product, "GET", "/overview")).body;
}

/** Waits until all that was accepted is applied. @returns how many that are */
async function settled(): Promise<number> {
  const isDone = async () => {
    const { ledger } = await overview();
    return ledger.applied === ledger.routed && ledger.waiting === 0 && ledger;
  };
  return (await eventually(isDone, "everything is applied", 120_000)).applied;
}

test("three times the maximum is refused with Retry-After, loses nothing, and is over within 10 s", async () => {
  const name = "three times the maximum of one process and its Redis";
  const measuring = startMeasuring("Overload", name);
  const maximum = await findMaximum();
  await settled();
  const refusedBefore = books.refusals;
  const overloadedMs = performance.now();
  const offered = await offer(OVERLOAD * maximum, HALF_MS);
  const overAtMs = performance.now();
  const overloadSeconds = (overAtMs - overloadedMs) / 1_000;
  if (RUN_MS > 0) expect(books.refusals).toBeGreaterThan(refusedBefore);
  await eventually(send, "a message is accepted again", BACK_WITHIN_MS);
  measuring.recovered(overAtMs);
  const areTaken = async () => refused.length === 0 || ((await send()) && refused.length === 0);
  await eventually(areTaken, "what was refused is accepted", 600_000, 1);
  const applied = await settled();
  expect(books.odd).toEqual([]);
  expect(applied).toBe(books.accepted);
  expect(product.output()).not.toContain("dead letter");
  await measuring.done({
    inputs: books.accepted,
    lost: Math.max(0, books.accepted - applied),
    doubled: Math.max(0, applied - books.accepted),
    further: {
      "events accepted a second at the maximum": Math.round(maximum),
      "seconds of overload": Math.round(overloadSeconds),
      "events offered a second in the overload": Math.round(offered / overloadSeconds),
      "messages refused with Retry-After": books.refusals,
    },
  });
}, 3_600_000);

interface Sample {
  readonly minutes: number;
  readonly memoryMiB: number;
  readonly files: number;
  readonly waiting: number;
  readonly p99Ms: number;
}

/** By what the page calls them. Less than `least` counts as that much: what is small may well double. */
const SERIES: Readonly<Record<string, { of: (one: Sample) => number; least: number }>> = {
  "memory in MiB": { of: ({ memoryMiB }) => memoryMiB, least: 0 },
  "open descriptors but those of ClickHouse's threads": { of: ({ files }) => files, least: 100 },
  "lag in events": { of: ({ waiting }) => waiting, least: HIGH_WATER / 10 },
  "latency, p99 in ms": { of: ({ p99Ms }) => p99Ms, least: 100 },
};
/** How much higher a series may be in its last third than in its first, by their medians, and count as flat. */
const FLAT = 0.1;

function growthOf(samples: readonly Sample[]) {
  const third = Math.floor(samples.length / 3);
  return Object.entries(SERIES).map(([what, { of, least }]) => {
    const first = Math.max(least, median(samples.slice(0, third).map(of)));
    const last = median(samples.slice(-third).map(of));
    return {
      what,
      middle: median(samples.map(of)),
      perMinute: slopeOf(samples.map((one) => [one.minutes, of(one)])),
      isFlat: third > 0 && last <= first * (1 + FLAT),
    };
  });
}

test.if(RUN_MS > 0)(
  "at half of the maximum memory, files, lag and latency do not grow",
  async () => {
    const maximum = await findMaximum();
    await settled();
    const measuring = startMeasuring("Overload", "soak at half of the maximum");
    const samples: Sample[] = [];
    const fromMs = performance.now();
    let dueMs = fromMs;
    books.latenciesMs = [];
    const before = books.accepted;
    await offer(maximum / 2, HALF_MS, async () => {
      if (performance.now() < dueMs) return;
      dueMs += SAMPLE_MS;
      samples.push(await sample((performance.now() - fromMs) / 60_000));
      books.latenciesMs = [];
    });
    await settled();
    // The first quarter is for what a process fills once: caches, pools, compiled code.
    const warm = samples.slice(Math.floor(samples.length / 4));
    const growth = growthOf(warm);
    for (const { what, middle, perMinute } of growth)
      process.stdout.write(
        `soak: ${what}: median ${middle.toFixed(1)}, ${perMinute.toFixed(2)} more per minute\n`,
      );
    const missed = growth.filter(({ isFlat }) => !isFlat).map(({ what }) => `${what} is not flat`);
    await measuring.done({
      inputs: books.accepted - before,
      further: { samples: warm.length, "events a second": Math.round(maximum / 2) },
      slopes: growth.map(({ what, middle, perMinute }) => ({
        what,
        median: Math.round(middle * 10) / 10,
        perMinute: Math.round(perMinute * 100) / 100,
      })),
      ...(missed.length > 0 && { missed }),
    });
    expect(missed).toEqual([]);
  },
  3_600_000,
);

async function sample(minutes: number): Promise<Sample> {
  const folder = `/proc/${product.pid()}`;
  const status = await readFile(`${folder}/status`, "utf8");
  const descriptors = await readdir(`${folder}/fd`);
  const links = await Promise.all(
    descriptors.map((name) => readlink(`${folder}/fd/${name}`).catch(() => "")),
  );
  const { queues } = await overview();
  const sorted = books.latenciesMs.toSorted((one, other) => one - other);
  return {
    minutes,
    memoryMiB: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024,
    // The embedded ClickHouse keeps three of them open for each of its threads, once it has used it.
    files: links.filter((link) => !link.startsWith(`${folder}/task/`)).length,
    waiting: queues.eventLog,
    p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
  };
}

/** Of the straight line with the least squares. */
function slopeOf(points: ReadonlyArray<readonly [x: number, y: number]>): number {
  if (points.length < 2) return 0;
  const mean = (at: 0 | 1) => points.reduce((sum, one) => sum + one[at], 0) / points.length;
  const [meanX, meanY] = [mean(0), mean(1)];
  const above = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0);
  return above / points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;
}
