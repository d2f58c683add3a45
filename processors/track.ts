/** From the event log to shipment state: map, fold, commit. Correct under any order, repetition and crash. */
import type { Fact } from "#core/domain/fact.ts";
import { foldAll } from "#core/domain/fold.ts";
import { mapStatus } from "#core/domain/map-status.ts";
import { agrees } from "#core/domain/match-reference.ts";
import { instantOf } from "#core/domain/rome-time.ts";
import { factsApplied } from "#core/metrics.ts";
import type { Redis } from "#core/redis/client.ts";
import type { Configuration } from "#core/redis/configuration.ts";
import type { Entry, Failure, Handler } from "#core/redis/consumer.ts";
import { decodeLoggedEvent, type LoggedEvent, rememberEvents } from "#core/redis/event-log.ts";
import { type Reference, trackingReference } from "#core/redis/keys.ts";
import type { Live } from "#core/redis/live.ts";
import { dropParked, type ParkedEvent, readParked } from "#core/redis/parked.ts";
import { referencesOf, registerReferences } from "#core/redis/references.ts";
import { seenLayout, seenPlace } from "#core/redis/seen.ts";
import {
  type Commit,
  commitShipments,
  type HotShipment,
  readHistory,
  readHotShipments,
  takeNumbers,
} from "#core/redis/shipments.ts";
import { addFacts, replaceHistory } from "#processors/commits.ts";

export interface TrackDeps {
  readonly redis: Redis;
  readonly live: Live;
  readonly eventsPerDay: number;
}

interface Arrival {
  readonly entry: Entry;
  readonly logged: LoggedEvent;
}

/** What a commit took from the set-aside store: remembered and dropped after it, before the acknowledgement. */
interface Released {
  readonly courier: string;
  readonly events: readonly ParkedEvent[];
  readonly references: readonly Reference[];
}

interface Plan {
  readonly commit: Commit | null;
  readonly released: Released | null;
}

/** Rounds of reading and committing again when another process got ahead. */
const ROUNDS = 10;

export function trackHandler(deps: TrackDeps): Handler {
  return async (entries) => {
    const failures: Failure[] = [];
    const arrivals: Arrival[] = [];
    for (const entry of entries) {
      try {
        arrivals.push({ entry, logged: decodeLoggedEvent(entry.fields["e"] ?? "") });
      } catch (error) {
        failures.push({ entry, reason: `unreadable: ${error}` });
      }
    }
    let open = Map.groupBy(arrivals, ({ logged }) => logged.shipmentId);
    for (let round = 1; open.size > 0 && round <= ROUNDS; round += 1) {
      const configuration = await deps.live.refresh();
      const shipments = await readHotShipments(deps.redis, [...open.keys()]);
      for (const [id, missing] of open) {
        if (shipments.has(id)) continue;
        failures.push(...missing.map(({ entry }) => ({ entry, reason: `no shipment ${id}` })));
        open.delete(id);
      }
      open = await applyAll(deps, configuration, shipments, open);
    }
    for (const late of [...open.values()].flat()) {
      failures.push({ entry: late.entry, reason: "the shipment kept changing" });
    }
    return failures;
  };
}

/** @returns the arrivals of shipments that another process has changed meanwhile */
async function applyAll(
  deps: TrackDeps,
  configuration: Configuration,
  shipments: ReadonlyMap<number, HotShipment>,
  open: ReadonlyMap<number, Arrival[]>,
): Promise<Map<number, Arrival[]>> {
  const { redis, live } = deps;
  const nowMs = live.now();
  const plans = await Promise.all(
    [...shipments.values()].map((shipment) => {
      const events = (open.get(shipment.id) ?? []).map(({ logged }) => logged);
      return plan(redis, configuration, shipment, events, nowMs);
    }),
  );
  const commits = plans.flatMap(({ commit }) => (commit ? [commit] : []));
  await registerAliases(redis, commits);
  const outcomes = await commitShipments(redis, commits, nowMs, configuration.version);
  const conflicts = new Map<number, Arrival[]>();
  commits.forEach(({ from, facts, replaced }, at) => {
    if (outcomes[at] !== "committed") conflicts.set(from.id, open.get(from.id) ?? []);
    else factsApplied.inc(facts.length - (replaced?.length ?? 0));
  });
  await finishReleases(deps, plans, conflicts, nowMs);
  return conflicts;
}

/**
 * What the events make of a shipment. A redelivered event adds nothing, but its set-aside ones are finished, and one that
 * was released with the little that had been kept of it is replaced by what was sent in full.
 */
async function plan(
  redis: Redis,
  configuration: Configuration,
  shipment: HotShipment,
  events: readonly LoggedEvent[],
  nowMs: number,
): Promise<Plan> {
  const { id, state, meta } = shipment;
  const catalogue = configuration.couriers.get(meta.courier)?.catalogue ?? new Map();
  const toFact = (logged: Omit<LoggedEvent, "shipmentId" | "courier">): Fact => ({
    key: logged.factKey,
    event: logged.event,
    occurredAtMs: instantOf(logged.event.occurredAt),
    receivedAtMs: logged.receivedAtMs,
    place: logged.place,
    mapping: mapStatus(catalogue, logged.event),
  });
  const released = await findParked(redis, configuration, shipment, events, nowMs);
  const parked = (released?.events ?? []).map((one): Fact => ({ ...toFact(one), setAside: true }));
  // An event that was resent in full replaces its set-aside copy: it is folded first and the copy is known then.
  const arrived = foldAll(state, events.map(toFact));
  const joined = foldAll(arrived.state, parked);
  // Folded once more, all in occurredAt order: the changes then read as they happened.
  const fresh = [...arrived.folded, ...joined.folded].map(({ change }) => change.fact);
  const known = events.filter(({ factKey }) => state.keys.includes(factKey)).map(toFact);
  const history = known.length === 0 ? [] : await readHistory(redis, id);
  const full = inFull(history, known);
  if (full.count > 0) {
    const commit = replaceHistory(shipment, history, full.facts, fresh);
    const applied = arrived.folded.length + full.count;
    const counts = { applied, released: joined.folded.length - full.count };
    return { commit: { ...commit, counts }, released };
  }
  if (fresh.length === 0) return { commit: null, released };
  const ordered = foldAll(state, fresh);
  const commit = addFacts(shipment, ordered.state, ordered.folded, joined.folded.length);
  return { commit, released };
}

/** The history with released facts replaced by those that came in full after them. */
function inFull(
  history: readonly Fact[],
  known: readonly Fact[],
): { readonly facts: readonly Fact[]; readonly count: number } {
  const byKey = new Map(known.map((fact) => [fact.key, fact]));
  let count = 0;
  const facts = history.map((fact) => {
    const whole = fact.setAside ? byKey.get(fact.key) : undefined;
    if (whole) count += 1;
    return whole ?? fact;
  });
  return { facts, count };
}

/**
 * Set-aside events that this shipment's first event releases (document 2, "Unknown-tracking set-aside"): looked for with
 * the first fact, with a new alias, and with a redelivered event, whose release may have been cut short.
 */
async function findParked(
  redis: Redis,
  configuration: Configuration,
  { state, meta }: HotShipment,
  events: readonly LoggedEvent[],
  nowMs: number,
): Promise<Released | null> {
  const isRedelivery = events.some(({ factKey }) => state.keys.includes(factKey));
  const aliases = events.flatMap(
    ({ event }) => event.trackingNumberChange?.newTrackingNumber ?? [],
  );
  const numbers =
    state.keys.length === 0 || isRedelivery ? [meta.trackingNumber, ...aliases] : aliases;
  if (numbers.length === 0) return null;
  const channel = configuration.channels.get(meta.channelId);
  const accounts = channel?.couriers.get(meta.courier)?.senderAccounts ?? [];
  const references = referencesOf(meta.courier, numbers, accounts, meta.orderReference);
  const parked = await readParked(redis, references, nowMs);
  const own = parked.filter(({ event }) => agrees(meta, event.externalId));
  return own.length === 0 ? null : { courier: meta.courier, events: own, references };
}

/** A number that an event announces, or that finds a placeholder shipment, finds the shipment from now on. */
async function registerAliases(redis: Redis, commits: readonly Commit[]): Promise<void> {
  const registrations = commits.flatMap(({ from, state, facts }) => {
    const { id, meta } = from;
    const found = meta.isPlaceholder
      ? facts.flatMap(({ event }) => event.trackingNumber ?? [])
      : [];
    const added = state.aliases.filter((alias) => !from.state.aliases.includes(alias));
    return [...new Set([...found, ...added])].map((number) => ({
      reference: trackingReference(meta.courier, number),
      shipmentId: id,
      channelId: meta.channelId,
      isPlaceholder: meta.isPlaceholder,
      orderReference: meta.orderReference,
    }));
  });
  if (registrations.length === 0) return;
  await registerReferences(redis, registrations);
  await takeNumbers(
    redis,
    commits.flatMap(({ from: { id, meta }, state }) =>
      state.aliases.map((trackingNumber) => ({ ...meta, shipmentId: id, trackingNumber })),
    ),
  );
}

/** Applied set-aside events take their ids, so that a resend is a DUPLICATE, and leave the store. */
async function finishReleases(
  { redis, eventsPerDay }: TrackDeps,
  plans: readonly Plan[],
  conflicts: ReadonlyMap<number, unknown>,
  nowMs: number,
): Promise<void> {
  const done = plans.flatMap(({ commit, released }) =>
    released && !(commit && conflicts.has(commit.from.id)) ? [released] : [],
  );
  if (done.length === 0) return;
  const layout = await seenLayout(redis, nowMs, eventsPerDay);
  const places = done.flatMap(({ courier, events }) =>
    events.map(({ event }) => seenPlace(courier, event.eventId)),
  );
  await rememberEvents(redis, layout, places);
  await dropParked(redis, done);
}
