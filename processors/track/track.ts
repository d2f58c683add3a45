/** From the event log to shipment state: map, fold, commit. Correct under any order, repetition and crash. */

import { type Archive, channelsOfShipments } from "#core/archive/store/archive.ts";
import { bringBack } from "#core/archive/store/bring-back.ts";
import type { Configuration } from "#core/configuration/store/configuration.ts";
import type { Live } from "#core/configuration/store/live.ts";
import { type Fact, isFarAhead } from "#core/events/rules/fact.ts";
import { decodeLoggedEvent, type LoggedEvent } from "#core/events/store/event-log.ts";
import { CLOCK_SKEW_MS, GENERATION_DAYS } from "#core/events/store/seen.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import type { Failure, Handler, LogItem } from "#core/platform/log/consumer.ts";
import { chunks } from "#core/platform/process/chunks.ts";
import { factsApplied } from "#core/platform/process/metrics.ts";
import { nextTurn } from "#core/platform/process/next-turn.ts";
import { continueTrace, messageFacts, type TracedWork } from "#core/platform/process/tracing.ts";
import { shipmentPartition } from "#core/platform/redis/keys.ts";
import { describeFailure } from "#core/platform/redis/store-unavailable.ts";
import { isShardUnavailable } from "#core/platform/redis/unavailable-shard.ts";
import { instantOf } from "#core/platform/time/rome-time.ts";
import { erasedFact } from "#core/shipments/rules/erase.ts";
import { foldAll } from "#core/shipments/rules/fold.ts";
import { HISTORY_LIMIT } from "#core/shipments/rules/history-limit.ts";
import {
  type Commit,
  commitShipments,
  type HotShipment,
  readHistories,
  readHotShipments,
  SHIPMENTS_PER_CALL,
} from "#core/shipments/store/shipments.ts";
import { type Catalogue, mapStatus } from "#core/statuses/rules/map-status.ts";
import { addFacts, replaceHistory, withTrimmedHistory } from "./commits.ts";
import { findReleases, finishReleases, type ReleaseDeps, type Released } from "./release.ts";

export interface TrackDeps extends ReleaseDeps {
  readonly live: Live;
  /** Absent: nothing was ever archived. */
  readonly archive?: Archive;
}

interface Arrival {
  readonly entry: LogItem;
  readonly logged: LoggedEvent;
  /** Null = it is not traced. */
  readonly span: TracedWork | null;
}

/** A shipment and all that has to be known to fold its events in. */
interface Gathered {
  readonly shipment: HotShipment;
  readonly events: readonly LoggedEvent[];
  readonly released: Released | null;
  /** Empty where it is not needed. */
  readonly history: readonly Fact[];
}

interface Plan {
  readonly id: number;
  readonly commit: Commit | null;
  readonly released: Released | null;
}

/** Arrivals by shipment. */
type Arrivals = ReadonlyMap<number, readonly Arrival[]>;

/** Rounds of reading and committing again when another process got ahead. */
const ROUNDS = 10;
/** No eventId is accepted again within this time. */
const REMEMBERED_MS = 2 * GENERATION_DAYS * 86_400_000 - CLOCK_SKEW_MS;
const KEPT_CHANGING = "the shipment kept changing";

export function trackHandler(deps: TrackDeps): Handler {
  return async (entries) => {
    const failures: Failure[] = [];
    const arrivals: Arrival[] = [];
    for (const entry of entries) {
      try {
        arrivals.push(arrivalOf(entry));
      } catch (error) {
        failures.push({ entry, reason: `unreadable: ${error}` });
      }
    }
    let open: Arrivals = Map.groupBy(arrivals, ({ logged }) => logged.shipmentId);
    for (let round = 1; open.size > 0 && round <= ROUNDS; round += 1) {
      const { conflicts, missing, inUnavailable } = await applyAll(deps, open);
      for (const [id, error] of inUnavailable) {
        const reason = describeFailure(error);
        failures.push(...(open.get(id) ?? []).map(({ entry }) => ({ entry, reason, waits: true })));
      }
      const { back, unavailable } = await backFromArchive(deps, missing);
      for (const id of missing) {
        if (back.has(id)) continue;
        const reason = unavailable ?? `no shipment ${id}`;
        const waits = unavailable !== null;
        failures.push(...(open.get(id) ?? []).map(({ entry }) => ({ entry, reason, waits })));
      }
      open = new Map([...conflicts, ...back].map((id) => [id, open.get(id) ?? []]));
    }
    for (const late of [...open.values()].flat()) {
      failures.push({ entry: late.entry, reason: KEPT_CHANGING });
    }
    endSpans(arrivals, failures);
    return failures;
  };
}

/** A traced event goes on under the span that applies it. */
function arrivalOf(entry: LogItem): Arrival {
  const logged = decodeLoggedEvent(entry.fields["e"] ?? "");
  const span = continueTrace("consumer", "track", logged.traceparent);
  if (span === null) return { entry, logged, span };
  const { courier, event, messageId = "", shipmentId } = logged;
  span.set({
    ...messageFacts("event", "track"),
    "waybill.courier": courier,
    "waybill.event_id": event.eventId,
    "waybill.message_id": messageId,
    "waybill.shipment_id": shipmentId,
  });
  return { entry, logged: { ...logged, traceparent: span.traceparent }, span };
}

/** A batch that throws leaves its spans unsent: its events are handled again, and traced then. */
function endSpans(arrivals: readonly Arrival[], failures: readonly Failure[]): void {
  for (const { entry, span } of arrivals) {
    span?.end(failures.find((failure) => failure.entry === entry)?.reason);
  }
}

interface Back {
  /** Shipments that are in Redis again. */
  readonly back: ReadonlySet<number>;
  /** Why the archive cannot be read; null = it was. */
  readonly unavailable: string | null;
}

/** Shipments that Redis does not have come back from the archive, if they are there. Events of one whose row is damaged become dead letters. */
async function backFromArchive(
  { redis, archive, live }: TrackDeps,
  missing: readonly number[],
): Promise<Back> {
  if (missing.length === 0 || !archive) return { back: new Set(), unavailable: null };
  try {
    const channelIds = channelsOfShipments(live.configuration(), missing);
    const { back } = await bringBack(redis, archive, missing, channelIds);
    return { back, unavailable: null };
  } catch (error) {
    if (error instanceof Problem) return { back: new Set(), unavailable: error.detail };
    throw error;
  }
}

/**
 * Releases what was parked under references of shipments that had their first event before all of those were registered.
 * Others are left alone.
 * @throws when a shipment was still being changed in the last round
 */
export async function releaseParked(deps: TrackDeps, ids: readonly number[]): Promise<void> {
  let open = ids;
  for (let round = 1; open.length > 0; round += 1) {
    if (round > ROUNDS) throw new Error(KEPT_CHANGING);
    const applied = await applyAll(deps, new Map(open.map((id) => [id, []])));
    for (const error of applied.inUnavailable.values()) throw error;
    open = applied.conflicts;
  }
}

interface Applied {
  /** Shipments that another process has changed meanwhile, or for which more events were parked. */
  readonly conflicts: readonly number[];
  readonly missing: readonly number[];
  /** Shipments that are in an unavailable shard, or have something there, and why: all others are done. */
  readonly inUnavailable: ReadonlyMap<number, unknown>;
}

/**
 * Works call by call: while Redis writes the shipments of one call, those of the next are folded and packed. All reads are
 * asked for at the start, so that none waits behind a commit.
 */
async function applyAll(deps: TrackDeps, open: Arrivals): Promise<Applied> {
  const configuration = deps.live.refresh();
  const calls = [...Map.groupBy(open.keys(), shipmentPartition).values()].flatMap((ids) =>
    chunks(ids, SHIPMENTS_PER_CALL),
  );
  const gathering = calls.map((ids) => gather(deps, configuration, ids, open));
  // Whichever fails, the batch ends when nothing of it is under way any more.
  const settled = Promise.allSettled(gathering);
  const committing: Promise<readonly number[]>[] = [];
  const missing: number[] = [];
  const inUnavailable = new Map<number, unknown>();
  try {
    for (const [at, reading] of gathering.entries()) {
      const ids = calls[at] ?? [];
      const shipments = await reading.catch((error) => {
        keepUnavailable(deps, inUnavailable, ids, error);
      });
      if (!shipments) continue;
      const found = new Set(shipments.map(({ shipment }) => shipment.id));
      missing.push(...ids.filter((id) => !found.has(id)));
      const commit = apply(deps, await configuration, shipments).catch((error) => {
        keepUnavailable(deps, inUnavailable, found, error);
        return [];
      });
      // Its failure is heard at the end, after the others.
      commit.catch(() => {});
      committing.push(commit);
      await nextTurn();
    }
  } finally {
    await Promise.allSettled([settled, ...committing]);
  }
  return { conflicts: (await Promise.all(committing)).flat(), missing, inUnavailable };
}

/** @throws an error that is not of an unavailable shard */
function keepUnavailable(
  { redis }: TrackDeps,
  inUnavailable: Map<number, unknown>,
  ids: Iterable<number>,
  error: unknown,
): void {
  if (!isShardUnavailable(error, redis)) throw error;
  for (const id of ids) inUnavailable.set(id, error);
}

/** @returns ids of shipments that another process has changed meanwhile, or for which more events were parked */
async function apply(
  deps: TrackDeps,
  configuration: Configuration,
  shipments: readonly Gathered[],
): Promise<number[]> {
  const { redis, live } = deps;
  const nowMs = live.now();
  const plans = shipments.map((one) => plan(configuration, one));
  const commits = plans.flatMap(({ commit }) => (commit ? [commit] : []));
  const outcomes = await commitShipments(redis, commits, nowMs, configuration.version);
  const conflicts = new Set<number>();
  let applied = 0;
  commits.forEach(({ from, counts }, at) => {
    if (outcomes[at] !== "committed") conflicts.add(from.id);
    else applied += (counts?.applied ?? 0) + (counts?.released ?? 0);
  });
  factsApplied.inc(applied);
  const done = plans.flatMap(({ commit, released }) =>
    released && !(commit && conflicts.has(commit.from.id)) ? [released] : [],
  );
  await finishReleases(deps, done, nowMs);
  // Done again, they find the rest of what was parked for them.
  const unfinished = plans.filter(({ released }) => released?.hasMore);
  return [...new Set([...conflicts, ...unfinished.map(({ id }) => id)])];
}

/** The shipments that exist, with what their events need to be folded in. */
async function gather(
  deps: TrackDeps,
  refreshed: Promise<Configuration>,
  ids: readonly number[],
  open: Arrivals,
): Promise<Gathered[]> {
  const { redis } = deps;
  const [configuration, hot] = await Promise.all([refreshed, readHotShipments(redis, ids)]);
  const firsts = await firstReceived(
    redis,
    [...hot.values()].filter(({ id }) => open.get(id)?.length === 0),
  );
  const arrived = [...hot.values()].map((shipment) => {
    const events = (open.get(shipment.id) ?? []).map(({ logged }) => logged);
    return { shipment, events, firstMs: firsts.get(shipment.id) ?? 0 };
  });
  const released = await findReleases(deps, configuration, arrived);
  const found = arrived.map((one): Gathered => {
    return { ...one, released: released.get(one.shipment.id) ?? null, history: NO_FACTS };
  });
  const wanted = found.filter(needsHistory).map(({ shipment }) => shipment.id);
  if (wanted.length === 0) return found;
  const histories = await readHistories(redis, wanted);
  return found.map((one) => ({ ...one, history: histories.get(one.shipment.id) ?? NO_FACTS }));
}

const NO_FACTS: readonly Fact[] = [];

/** When the first event of each was received, as far as its history goes back; those that were parked are none. */
async function firstReceived(
  redis: TrackDeps["redis"],
  shipments: readonly HotShipment[],
): Promise<Map<number, number>> {
  const ids = shipments.filter(({ state }) => state.keys.length > 0).map(({ id }) => id);
  if (ids.length === 0) return NO_TIMES;
  const histories = await readHistories(redis, ids);
  return new Map(
    [...histories].map(([id, facts]) => {
      const own = facts.filter(({ parked }) => parked !== true);
      return [id, Math.min(...own.map(({ receivedAtMs }) => receivedAtMs))];
    }),
  );
}

const NO_TIMES: Map<number, number> = new Map();

function needsHistory({ shipment, events, released }: Gathered): boolean {
  const added = events.length + (released?.events.length ?? 0);
  const isLong = shipment.state.keys.length + added > HISTORY_LIMIT;
  return isLong || hasKnown(shipment, events) || isHeldByFuture(shipment);
}

/** The state was decided by a fact from far ahead, which an earlier version put in front of all later ones. */
function isHeldByFuture({ state: { last, mapped } }: HotShipment): boolean {
  return [last, mapped].some((said) => said !== null && isFarAhead(said.by));
}

function hasKnown({ state }: HotShipment, events: readonly LoggedEvent[]): boolean {
  return events.some(({ factKey }) => state.keys.includes(factKey));
}

/**
 * What the events make of a shipment. A redelivered event adds nothing, but its parked ones are finished; one that was
 * released with the little that had been kept of it is replaced by what was sent in full; and one that was accepted again is
 * counted.
 */
function plan(configuration: Configuration, gathered: Gathered): Plan {
  const { shipment, released, history } = gathered;
  const { id, state, meta, base } = shipment;
  const catalogue = configuration.couriers.get(meta.courier)?.catalogue ?? NO_CATALOGUE;
  const left = base && new Set(base.keys);
  const events = factsOf(catalogue, left, meta.isErased, gathered.events);
  const releasedFacts = factsOf(catalogue, left, meta.isErased, released?.events ?? []);
  const parked = releasedFacts.map((fact): Fact => ({ ...fact, parked: true }));
  // An event that was resent in full replaces its parked copy: it is folded first and the copy is known then.
  const arrived = foldAll(state, events);
  const joined = foldAll(arrived.state, parked);
  const known = history.length === 0 ? [] : events.filter(({ key }) => state.keys.includes(key));
  const full = inFull(history, known);
  const again = acceptedAgain(full.facts, known);
  const replaced = full.count + again.count;
  const fresh = [...arrived.folded, ...joined.folded].map(({ change }) => change.fact);
  if (replaced > 0) {
    const commit = replaceHistory(shipment, history, again.facts, fresh);
    const applied = arrived.folded.length + replaced;
    const counts = { applied, released: joined.folded.length - full.count };
    return { id, commit: withTrimmedHistory({ ...commit, counts }, history), released };
  }
  if (fresh.length === 0) return { id, commit: null, released };
  if (isHeldByFuture(shipment)) {
    const counts = { applied: arrived.folded.length, released: joined.folded.length };
    const commit = replaceHistory(shipment, history, history, fresh);
    return { id, commit: withTrimmedHistory({ ...commit, counts }, history), released };
  }
  // Folded once more where both have some, all in occurredAt order: the changes then read as they happened.
  const ordered = joined.folded.length === 0 ? arrived : foldAll(state, fresh);
  const commit = addFacts(shipment, ordered.state, ordered.folded, joined.folded.length);
  return { id, commit: withTrimmedHistory(commit, history), released };
}

const NO_CATALOGUE: Catalogue = new Map();

type LoggedFacts = ReadonlyArray<Omit<LoggedEvent, "shipmentId" | "courier">>;

/** @param left keys of facts that have left the history */
function factsOf(
  catalogue: Catalogue,
  left: ReadonlySet<string> | null,
  isErased: boolean | undefined,
  logged: LoggedFacts,
): Fact[] {
  const here = left === null ? logged : logged.filter(({ factKey }) => !left.has(factKey));
  const facts = here.map(
    ({ factKey, event, receivedAtMs, messageIndex, messageId, traceparent }) => ({
      key: factKey,
      event,
      occurredAtMs: instantOf(event.occurredAt),
      receivedAtMs,
      messageIndex,
      mapping: mapStatus(catalogue, event),
      ...(messageId !== undefined && { messageId }),
      ...(traceparent !== undefined && { traceparent }),
    }),
  );
  return isErased ? facts.map(erasedFact) : facts;
}

/**
 * The history with a mark on facts that were accepted again after the memory of their eventIds had ended: they change nothing,
 * and are applied in the ledger, once each. An entry that is merely delivered again is not so much later than its fact.
 */
function acceptedAgain(
  history: readonly Fact[],
  known: readonly Fact[],
): { readonly facts: readonly Fact[]; readonly count: number } {
  if (known.length === 0) return { facts: history, count: 0 };
  const lastMs = new Map(known.map(({ key, receivedAtMs }) => [key, receivedAtMs]));
  let count = 0;
  const facts = history.map((fact) => {
    const againMs = lastMs.get(fact.key) ?? 0;
    if (againMs - (fact.againMs ?? fact.receivedAtMs) < REMEMBERED_MS) return fact;
    count += 1;
    return { ...fact, againMs };
  });
  return { facts, count };
}

/** The history with released facts replaced by those that came in full after them. */
function inFull(
  history: readonly Fact[],
  known: readonly Fact[],
): { readonly facts: readonly Fact[]; readonly count: number } {
  if (known.length === 0) return { facts: history, count: 0 };
  const byKey = new Map(known.map((fact) => [fact.key, fact]));
  let count = 0;
  const facts = history.map((fact) => {
    const whole = fact.parked ? byKey.get(fact.key) : undefined;
    if (whole) count += 1;
    return whole ?? fact;
  });
  return { facts, count };
}
