/** From the event log to shipment state: map, fold, commit. Correct under any order, repetition and crash. */
import { compareFacts, type Fact, orderOf } from "#core/domain/fact.ts";
import { type Folded, fold, type ShipmentState, type StateChange } from "#core/domain/fold.ts";
import { laneRow } from "#core/domain/lane.ts";
import { mapStatus } from "#core/domain/map-status.ts";
import { agrees } from "#core/domain/match-reference.ts";
import { instantOf } from "#core/domain/rome-time.ts";
import { factsApplied } from "#core/metrics.ts";
import type { Change } from "#core/redis/change-log.ts";
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
  readHotShipments,
} from "#core/redis/shipments.ts";

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
    const configuration = await deps.live.refresh();
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
  const outcomes = await commitShipments(redis, commits, nowMs);
  const conflicts = new Map<number, Arrival[]>();
  commits.forEach(({ from, facts }, at) => {
    if (outcomes[at] === "conflict") conflicts.set(from.id, open.get(from.id) ?? []);
    else factsApplied.inc(facts.length);
  });
  await finishReleases(deps, plans, conflicts, nowMs);
  return conflicts;
}

/** What the events make of a shipment. A redelivered event adds nothing, but its set-aside ones are finished. */
async function plan(
  redis: Redis,
  configuration: Configuration,
  shipment: HotShipment,
  events: readonly LoggedEvent[],
  nowMs: number,
): Promise<Plan> {
  const { state, meta } = shipment;
  const catalogue = configuration.couriers.get(meta.courier)?.catalogue ?? new Map();
  const toFact = (logged: LoggedEvent): Fact => ({
    key: logged.factKey,
    event: logged.event,
    occurredAtMs: instantOf(logged.event.occurredAt),
    receivedAtMs: logged.receivedAtMs,
    place: logged.place,
    mapping: mapStatus(catalogue, logged.event.status.code),
  });
  const released = await findParked(redis, configuration, shipment, events, nowMs);
  const parked = (released?.events ?? []).map((one) =>
    toFact({ ...one, shipmentId: shipment.id, courier: meta.courier }),
  );
  // An event that was resent in full replaces its set-aside copy: it is folded first and the copy is known then.
  const arrived = foldAll(state, events.map(toFact));
  const joined = foldAll(arrived.state, parked);
  if (arrived.folded.length + joined.folded.length === 0) return { commit: null, released };
  if (joined.folded.length === 0) {
    return { commit: commitOf(shipment, arrived.state, arrived.folded), released };
  }
  // Folded once more, all in occurredAt order: the changes then read as they happened.
  const fresh = [...arrived.folded, ...joined.folded].map(({ change }) => change.fact);
  const ordered = foldAll(state, fresh);
  return { commit: commitOf(shipment, ordered.state, ordered.folded), released };
}

function foldAll(
  from: ShipmentState,
  facts: readonly Fact[],
): { state: ShipmentState; folded: Folded[] } {
  let state = from;
  const folded: Folded[] = [];
  const inOrder = [...facts].sort((one, other) => compareFacts(orderOf(one), orderOf(other)));
  for (const fact of inOrder) {
    const next = fold(state, fact);
    if (!next) continue;
    state = next.state;
    folded.push(next);
  }
  return { state, folded };
}

function commitOf(from: HotShipment, state: ShipmentState, folded: readonly Folded[]): Commit {
  const lane = laneRow(from.meta, from.state, state, from.version + 1);
  const { companyId, channelId } = from.meta;
  const changes = folded.map(({ change }, at): Change => {
    const isLast = at === folded.length - 1;
    return { companyId, channelId, ...describeChange(change), lane: isLast ? lane : null };
  });
  return {
    from,
    state,
    facts: folded.map(({ change }) => change.fact),
    changes,
    stamp: changes.some(({ changed }) => changed),
  };
}

function describeChange({ fact, changed, firstOccurrence }: StateChange) {
  const { key, event, occurredAtMs, receivedAtMs, mapping } = fact;
  return {
    fact: {
      key,
      occurredAtMs,
      receivedAtMs,
      courierStatus: event.status.description,
      place: event.location?.name ?? null,
      status: mapping?.status ?? null,
      detail: mapping?.detail ?? 0,
    },
    changed,
    firstOccurrence,
  };
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
  if (registrations.length > 0) await registerReferences(redis, registrations);
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
