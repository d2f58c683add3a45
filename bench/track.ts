/**
 * Event log to shipment state beside what limits it (row 3): `bun bench/track.ts [--shipments 1m] [--runs 5] [--everysec] [--quick]
 * [--json]`. Ours is the consumer as `processors/main.ts` starts it, on a log that the claim script has filled. Beside it
 * stand the same calls of the commit script, prepared beforehand: nothing is read, mapped, folded, packed or acknowledged.
 */
import type { CourierEvent } from "#core/events/rules/event.ts";
import { claimEvents } from "#core/events/store/event-log.ts";
import { seenBucket, seenLayout } from "#core/events/store/seen.ts";
import { run } from "#core/platform/redis/client.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { commitScript } from "#core/shipments/store/shipments.ts";
import { readLedger } from "#core/webhooks/store/deliveries/ledger.ts";
import { EVENTS_AT_ONCE } from "#processors/main.ts";
import { trackHandler } from "#processors/track/track.ts";
import { courierEvent, STEPS } from "./events.ts";
import * as harness from "./harness.ts";
import { figureOf } from "./rows.ts";
import {
  benchSetup,
  COURIER,
  emptyLogs,
  loadShipments,
  PARTITION_EACH,
  shipmentIdOf,
} from "./shipments.ts";
import { logItem, processLog } from "./tracking.ts";

const { shipments, runs, most } = harness.readOptions({
  shipments: [1_000_000, 20_000],
  runs: [5, 3],
  most: [50_000, 10_000],
});
/** Under way while it is measured; the others are there. */
const ACTIVE = Math.min(100_000, shipments / 2);
/** Each shipment is drawn once in a run. */
const EVENTS_PER_RUN = Math.min(most, ACTIVE / 2);
const AT_ONCE = 1_000;
/** Every fourth event comes with three others of its shipment; the rest alone. */
const TOGETHER = 4;

interface Parcel {
  /** Which of the shipments, and its id. */
  readonly n: number;
  readonly id: number;
  /** Events it has had. */
  step: number;
}

type Accepted = Readonly<{ id: number; event: CourierEvent }>;

/** Events of one call stand in one log, so that the consumer commits them together, as the prepared calls do. */
function nextEvents(parcel: Parcel, count: number): Accepted[] {
  let wanted: number | undefined;
  return Array.from({ length: count }, () => {
    const { n, id, step } = parcel;
    parcel.step += 1;
    for (let tries = 0; ; tries += 1) {
      const eventId = `bench-${id}-${step}-${tries}`;
      const { partition } = seenBucket(COURIER, eventId);
      wanted ??= partition;
      if (partition === wanted) return { id, event: courierEvent(n, step, eventId) };
    }
  });
}

const itemsOf = (events: readonly Accepted[]) =>
  events.map(({ id, event }, at) => logItem(id, event, at));

/** Of shipments drawn without repetition. */
function drawn(active: readonly Parcel[]): Accepted[] {
  const events: Accepted[] = [];
  const known = new Set<Parcel>();
  while (events.length < EVENTS_PER_RUN) {
    const parcel = active[harness.random(active.length)];
    if (!parcel || known.has(parcel)) continue;
    known.add(parcel);
    const isGroup = Math.random() < 1 / (3 * TOGETHER + 1);
    events.push(...nextEvents(parcel, isGroup ? TOGETHER : 1));
  }
  return events;
}

/** Active shipments have had 0 to 7 events. */
async function preload(runtime: Runtime, active: readonly Parcel[]): Promise<void> {
  const handle = trackHandler({ ...runtime, eventsPerDay: runtime.config.eventsPerDay });
  for (let from = 0; from < active.length; from += AT_ONCE) {
    const part = active.slice(from, from + AT_ONCE);
    const events = part.flatMap((parcel) => nextEvents(parcel, parcel.id % STEPS.length));
    const [failure] = await handle(itemsOf(events));
    if (failure) throw new Error(failure.reason);
    await emptyLogs(runtime.redis);
  }
}

/** Fills the event logs as ingest does. */
async function append({ redis, config }: Runtime, events: readonly Accepted[]): Promise<void> {
  const layout = await seenLayout(redis, Date.now(), config.eventsPerDay);
  const terms = { layout, highWater: harness.HIGH_WATER, courier: COURIER };
  for (let from = 0; from < events.length; from += AT_ONCE) {
    const claims = events.slice(from, from + AT_ONCE).map(({ id, event }, at) => {
      const entry = String(logItem(id, event, at).fields["e"]);
      return { seen: seenBucket(COURIER, event.eventId), entry };
    });
    const outcomes = await claimEvents(redis, { ...terms, nowMs: Date.now() }, claims);
    if (outcomes.some((one) => one !== "claimed")) throw new Error("an event was not claimed");
  }
}

/** @returns events a second */
function rated(work: () => Promise<void>) {
  Bun.gc(true);
  return harness.ratePerSecond(EVENTS_PER_RUN, work);
}

async function ours(runtime: Runtime, active: readonly Parcel[]): Promise<number> {
  const events = drawn(active);
  await append(runtime, events);
  return rated(() => processLog(runtime, events.length));
}

type Call = Readonly<{ keys: string[]; args: (string | Buffer)[] }>;

/** Longer than any call's reply has to be. */
const COMMITTED = new Array(1_000).fill(0);

/** The commit calls that the handler would make for every batch, not made. */
async function prepared(runtime: Runtime, events: readonly Accepted[]): Promise<Call[][]> {
  let calls: Call[] = [];
  const redis = new Proxy(runtime.redis, {
    get(real, name) {
      if (name === "evalSha") {
        return (sha: string, options: { keys: string[]; arguments: Call["args"] }) => {
          if (sha !== commitScript.sha) return real.evalSha(sha, options);
          calls.push({ keys: options.keys, args: options.arguments });
          return COMMITTED;
        };
      }
      const member = Reflect.get(real, name);
      return typeof member === "function" ? member.bind(real) : member;
    },
  });
  const handle = trackHandler({ ...runtime, redis, eventsPerDay: runtime.config.eventsPerDay });
  const batches: Call[][] = [];
  // Events of one shipment must meet in one batch, since nothing of it is written in between.
  const groups = [...Map.groupBy(events, ({ id }) => id).values()];
  let batch: Accepted[] = [];
  for (const [at, group] of groups.entries()) {
    batch.push(...group);
    if (batch.length < EVENTS_AT_ONCE && at < groups.length - 1) continue;
    await handle(itemsOf(batch));
    batches.push(calls);
    [calls, batch] = [[], []];
  }
  return batches;
}

async function peer(runtime: Runtime, active: readonly Parcel[]): Promise<number> {
  const batches = await prepared(runtime, drawn(active));
  const { redis } = runtime;
  return rated(async () => {
    for (const calls of batches) {
      await Promise.all(calls.map(({ keys, args }) => run(redis, commitScript, keys, args)));
    }
  });
}

await harness.runPart(async (defer) => {
  const store = await harness.openStore(defer, benchSetup(), PARTITION_EACH);
  const { runtime } = store;
  const { redis } = runtime;
  await loadShipments(store, shipments);
  const active = Array.from({ length: shipments }, (_, n) => n)
    .filter(() => Math.random() < ACTIVE / shipments)
    .map((n): Parcel => ({ n, id: shipmentIdOf(runtime, n), step: 0 }));
  await redis.configSet("appendfsync", "no");
  await preload(runtime, active);
  await redis.configSet("appendfsync", harness.flags.everysec ? "everysec" : "always");
  const timed = (work: typeof ours) => async () => {
    const rate = await work(runtime, active);
    await emptyLogs(redis);
    return rate;
  };
  const found = await harness.inTurns(runs, { ours: timed(ours), peer: timed(peer) });
  const sent = active.reduce((sum, { step }) => sum + step, 0);
  const { applied } = await readLedger(redis);
  if (applied !== sent) throw new Error(`${applied} of ${sent} events were applied`);
  const about = `${harness.fsyncText()}, medians of ${runs}`;
  return { figures: [figureOf("track state", found, { shipments })], redis, about };
});
