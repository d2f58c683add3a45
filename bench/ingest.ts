/**
 * HTTP ingest beside what limits it (rows 1, 2 and 5): `bun bench/ingest.ts [--runs 5] [--everysec] [--quick] [--json]`. Ingest is a process
 * of its own; signatures, validation, persistence and the ledger are on. The load comes from this process, on the same machine.
 */
import { claimEvents, encodeLoggedEvent } from "#core/events/store/event-log.ts";
import { resolveReferences } from "#core/events/store/references.ts";
import { seenBucket, seenLayout } from "#core/events/store/seen.ts";
import { eventLogs, trackingReference } from "#core/platform/redis/keys.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { courierEvent, type Message, messageOf, post } from "./events.ts";
import * as harness from "./harness.ts";
import { figureOf } from "./rows.ts";
import { benchSetup, COURIER, emptyLogs, loadShipments } from "./shipments.ts";
import { percentile } from "./table.ts";

const { flags, forEach, ratePerSecond } = harness;
const numbers = { runs: [5, 2], batches: [60, 20], singles: [6_000, 1_500] } as const;
const { runs, batches, singles } = harness.readOptions(numbers);
const SHIPMENTS = 2_000;
const PER_BATCH = 500;
/** Messages that both get before the clock starts: what is measured is code that has been running for a while. */
const WARM_UP = flags.quick ? { batches: 20, singles: 500 } : { batches: 100, singles: 6_000 };
/** Row 5: 500-event messages at this rate. */
const PACED_PER_SECOND = 20;
const PACED = flags.quick ? 40 : 200;
/** Of 500-event messages, and of messages of one event, whose writes share an fsync only when they come together. */
const IN_FLIGHT = 8;
const SINGLES_IN_FLIGHT = 64;
/** The memory of ids is sized for so many, so that its buckets have begun after the first messages, as they mostly have. */
const EVENTS_PER_DAY = 100_000;
/** Of the peer that adds a BullMQ job for each message. */
const JOBS_PATH = "/v1/jobs";

let counter = 0;

function newEvents(count: number) {
  return Array.from({ length: count }, () => {
    counter += 1;
    return courierEvent(counter % SHIPMENTS, 2, `bench-${process.pid}-${counter}-IN-TRANSIT`);
  });
}

/** Built and signed before the clock starts: the sender's work is not ours. */
function prepare(count: number, size: number): Message[] {
  return Array.from({ length: count }, () => {
    const events = newEvents(size).map((event) => JSON.stringify(event));
    return messageOf(counter, events);
  });
}

/** @returns messages a second */
function send(url: string, messages: readonly Message[], path?: string): Promise<number> {
  const atOnce = messages[0]?.events === 1 ? SINGLES_IN_FLIGHT : IN_FLIGHT;
  const work = () => forEach(messages, atOnce, (one) => post(url, one, path));
  return ratePerSecond(messages.length, work);
}

/** The scripts of the same claim, resolve and append on prepared data, without HTTP, checks or signatures. */
async function runBareScripts({ redis, config }: Runtime): Promise<number> {
  const layout = await seenLayout(redis, Date.now(), config.eventsPerDay);
  const common = { shipmentId: 17, courier: COURIER, receivedAtMs: Date.now() };
  const messages = Array.from({ length: batches }, () => {
    const events = newEvents(PER_BATCH);
    const claims = events.map((event, messageIndex) => {
      const seen = seenBucket(COURIER, event.eventId);
      const logged = { ...common, factKey: seen.factKey, messageIndex, event };
      return { seen, entry: encodeLoggedEvent(logged) };
    });
    const references = events.map((one) => trackingReference(COURIER, one.trackingNumber ?? ""));
    return { references, claims };
  });
  const work = () =>
    forEach(messages, IN_FLIGHT, async ({ references, claims }) => {
      await resolveReferences(redis, references);
      const { HIGH_WATER: highWater } = harness;
      await claimEvents(redis, { layout, highWater, courier: COURIER, nowMs: Date.now() }, claims);
    });
  return ratePerSecond(messages.length, work);
}

/** @returns the 99th percentile of the answer times of messages sent on time, milliseconds */
async function runPaced(url: string): Promise<number> {
  const messages = prepare(PACED, PER_BATCH);
  const startMs = performance.now();
  const times = messages.map(async (message, at) => {
    await Bun.sleep(startMs + (at * 1_000) / PACED_PER_SECOND - performance.now());
    return harness.timedMs(() => post(url, message));
  });
  return percentile(await Promise.all(times), 0.99);
}

/** What nobody processes here. */
async function forget({ redis }: Runtime): Promise<void> {
  await emptyLogs(redis, eventLogs());
  const jobs = await redis.keys("bull:messages:*");
  if (jobs.length > 0) await redis.unlink(jobs);
}

async function measure(runtime: Runtime, url: string, bareUrl: string) {
  for (const to of [url, bareUrl]) {
    await send(to, prepare(WARM_UP.batches, PER_BATCH));
    await send(to, prepare(WARM_UP.singles, 1));
  }
  await send(bareUrl, prepare(WARM_UP.singles, 1), JOBS_PATH);
  await forget(runtime);
  type Work = () => Promise<number>;
  const compare = async (name: string, own: Work, other: Work, times = 1) => {
    const timed = (work: Work) => async () => {
      const value = await work();
      await forget(runtime);
      return value * times;
    };
    const works = { ours: timed(own), peer: timed(other) };
    return figureOf(`ingest ${name}`, await harness.inTurns(runs, works, 0));
  };
  const sendBatches = () => send(url, prepare(batches, PER_BATCH));
  const sendSingles = (to: string, path?: string) => () => send(to, prepare(singles, 1), path);
  const bareScripts = () => runBareScripts(runtime);
  return [
    await compare("plain", sendBatches, bareScripts, PER_BATCH),
    await compare("jobs", sendSingles(url), sendSingles(bareUrl, JOBS_PATH)),
    await compare(
      "paced",
      () => runPaced(url),
      () => runPaced(bareUrl),
    ),
  ];
}

await harness.runPart(async (defer) => {
  const env = { EVENTS_PER_DAY: String(EVENTS_PER_DAY) };
  const store = await harness.openStore(defer, benchSetup(), env);
  await loadShipments(store, SHIPMENTS);
  const ingest = await harness.startServer("ingest", store.env);
  const socket = `redis+unix://${harness.socketOf(store.runtime)}`;
  const bare = await harness.startProgram(defer, "bare-route.ts", [socket]);
  const figures = await measure(store.runtime, ingest.url, bare.first);
  const about = `${harness.fsyncText()}, medians of ${runs}`;
  return { figures, redis: store.runtime.redis, about };
});
