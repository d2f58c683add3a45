/**
 * Releases parked events (document 2, "Unknown-tracking set-aside") to the shipments that they mean, judged by the same
 * rule as fresh events; makes shipments findable by the numbers that their events announce.
 *
 * Numbers are registered before parked events are looked for under them: an event that is parked in between is judged
 * again by ingest, since the reference has changed.
 */

import type { Configuration } from "#core/configuration/store/configuration.ts";
import type { Candidate } from "#core/events/rules/match-reference.ts";
import { type LoggedEvent, rememberEvents } from "#core/events/store/event-log.ts";
import { dropParked, isInTime, type ParkedEvent, readParked } from "#core/events/store/parked.ts";
import {
  candidateOf,
  listed,
  ownReferences,
  referencesOf,
  registerReferences,
  resolveReferences,
} from "#core/events/store/references.ts";
import { seenBucket, seenLayout } from "#core/events/store/seen.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { type Reference, trackingReference } from "#core/platform/redis/keys.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { addFurtherTexts } from "#core/search/store/search-lines.ts";
import { orderReferencesOf, type ShipmentMeta } from "#core/shipments/rules/shipment.ts";
import { matchEvents, type ReadEnds } from "#core/shipments/store/match-events.ts";
import { type HotShipment, takeNumbers } from "#core/shipments/store/shipments.ts";
import { type ConflictDeps, findConflicts } from "./number-conflicts.ts";

export interface ReleaseDeps extends ConflictDeps {
  readonly redis: Redis;
  readonly eventsPerDay: number;
}

/** A shipment and events that have come for it. */
export interface Arrived {
  readonly shipment: HotShipment;
  /** None where only parked events are looked for. */
  readonly events: readonly Arrival[];
  /** When the first of its events was received, where only parked events are looked for. */
  readonly firstMs?: number;
}

interface Arrival extends Pick<LoggedEvent, "event" | "factKey" | "receivedAtMs"> {
  /** Of a parked event: when the event was received that releases it. */
  readonly releasedAtMs?: number;
}

/** A number that finds the shipment from now on, and when the event was received that says so. */
interface NewNumber {
  readonly number: string;
  readonly atMs: number;
}

/** What a commit takes from the store of parked events: remembered and dropped after it, before the acknowledgement. */
export interface Released {
  readonly courier: string;
  readonly events: readonly ParkedEvent[];
  /** Keys of those that other shipments match too: they stay for these until their 7 days are over. */
  readonly shared: ReadonlySet<string>;
  /** There are further ones, for the next commit. */
  readonly hasMore: boolean;
}

/** Where to look for parked events of a shipment. */
interface Ask {
  readonly shipment: HotShipment;
  readonly references: readonly Reference[];
  /**
   * When the event was received that makes them count: by this it is judged whether the 7 days of a parked one were over, so
   * that it makes no difference when the processors come to it.
   */
  readonly atMs: number;
}

/** Events released to a shipment by one commit; the next ones follow in another. */
export const RELEASED_AT_ONCE = limit(
  1_000,
  "parked events released by one commit",
  "the next commit",
);
/** Numbers announced by events that were parked under announced numbers: longer chains than this are not followed. */
export const CHAIN_LIMIT = limit(
  100,
  "numbers followed in a chain of announcements",
  "the rest stays parked",
);

/** By shipment; those without are absent. Looked for with all others at once. */
export async function findReleases(
  deps: ReleaseDeps,
  configuration: Configuration,
  arrived: readonly Arrived[],
): Promise<Map<number, Released>> {
  const found = new Map<number, FoundEvents>();
  const ends: ReadEnds = new Map();
  let news = await registerNumbers(deps, arrived);
  let asks = arrived.flatMap((one) => asksOf(configuration, one, news.get(one.shipment.id)));
  for (let step = 0; step < CHAIN_LIMIT && asks.length > 0; step += 1) {
    const added = await findParked(deps.redis, configuration, asks, found, ends);
    news = await registerNumbers(deps, added);
    asks = added.flatMap((one) => numberAsks(one.shipment, news.get(one.shipment.id)));
  }
  const courierOf = new Map(arrived.map(({ shipment }) => [shipment.id, shipment.meta.courier]));
  return new Map(
    [...found].map(([id, { events, shared, hasMore }]) => [
      id,
      { courier: courierOf.get(id) ?? "", events: [...events.values()], shared, hasMore },
    ]),
  );
}

/** By key of the fact, since an event stands under each of its references. */
interface FoundEvents {
  readonly events: Map<string, ParkedEvent>;
  readonly shared: Set<string>;
  /** Of those that the shipment has not had yet. */
  fresh: number;
  hasMore: boolean;
}

/**
 * Everything is looked through with the first event, and with one that is delivered again, whose release may have been cut
 * short; new numbers with the event that announces them.
 */
function asksOf(
  { channels }: Configuration,
  { shipment, events, firstMs = 0 }: Arrived,
  newNumbers: readonly NewNumber[] = [],
): Ask[] {
  const { meta, state } = shipment;
  const hasFacts = state.keys.length > 0;
  const looksEverywhere =
    events.length === 0
      ? hasFacts
      : !hasFacts || events.some(({ factKey }) => state.keys.includes(factKey));
  if (!looksEverywhere) return numberAsks(shipment, newNumbers);
  const accounts = channels.get(meta.channelId)?.couriers.get(meta.courier)?.senderAccounts ?? [];
  const { trackingNumber, parcelNumbers = [] } = meta;
  const numbers = new Set([trackingNumber, ...parcelNumbers, ...state.aliases]);
  const references = referencesOf(meta.courier, [...numbers], accounts, orderReferencesOf(meta));
  const atMs = events.reduce((least, one) => Math.min(least, one.receivedAtMs), Infinity);
  const own = { shipment, references, atMs: events.length === 0 ? firstMs : atMs };
  return [own, ...numberAsks(shipment, newNumbers)];
}

/** A number counts from the event that announced it. */
function numberAsks(shipment: HotShipment, numbers: readonly NewNumber[] = []): Ask[] {
  return numbers.map(({ number, atMs }) => ({
    shipment,
    atMs,
    references: numbersOf(shipment, [number]),
  }));
}

function numbersOf({ meta }: HotShipment, numbers: readonly string[]): Reference[] {
  return numbers.map((number) => trackingReference(meta.courier, number));
}

/**
 * Adds the parked events that mean a shipment to those found for it.
 * @returns what was added
 */
async function findParked(
  redis: Redis,
  configuration: Configuration,
  asks: readonly Ask[],
  found: Map<number, FoundEvents>,
  ends: ReadEnds,
): Promise<Arrived[]> {
  const parked = await readParked(
    redis,
    asks.flatMap(({ references }) => references),
  );
  if (parked.size === 0) return [];
  const added: Arrived[] = [];
  for (const own of Map.groupBy(asks, ({ shipment }) => shipment.meta.courier).values()) {
    const open = own.flatMap(({ shipment, references, atMs }) => {
      const all = references.flatMap(({ key }) => parked.get(key) ?? []);
      const events = all.filter((one) => isInTime(one, atMs));
      const known = found.get(shipment.id)?.events;
      const fresh = new Map(events.map((event) => [event.factKey, event]));
      return [...fresh.values()]
        .filter(({ factKey }) => !known?.has(factKey))
        .map((event) => ({ shipment, parked: event, atMs }));
    });
    const matched = await matchParked(redis, configuration, own, open, ends);
    for (const [shipment, events] of Map.groupBy(matched, (one) => one.shipment)) {
      const one = found.get(shipment.id) ?? {
        events: new Map(),
        shared: new Set<string>(),
        fresh: 0,
        hasMore: false,
      };
      found.set(shipment.id, one);
      added.push({ shipment, events: addFound(one, shipment, events) });
    }
  }
  return added;
}

/** @returns those that one commit has room for */
function addFound(
  found: FoundEvents,
  { state, base }: HotShipment,
  matched: ReadonlyArray<Matched>,
): Arrival[] {
  const known = new Set([...state.keys, ...(base?.keys ?? [])]);
  return matched.flatMap(({ parked, isShared, atMs }) => {
    const { factKey } = parked;
    if (!known.has(factKey) && !found.events.has(factKey)) {
      if (found.fresh >= RELEASED_AT_ONCE) {
        found.hasMore = true;
        return [];
      }
      found.fresh += 1;
    }
    found.events.set(factKey, parked);
    if (isShared) found.shared.add(factKey);
    return [{ ...parked, releasedAtMs: atMs }];
  });
}

interface Open {
  readonly shipment: HotShipment;
  readonly parked: ParkedEvent;
  /** When the event was received that it is released by. */
  readonly atMs: number;
}

interface Matched extends Open {
  readonly isShared: boolean;
}

/** Those that mean the shipment, among others or alone. All shipments are of one courier. */
async function matchParked(
  redis: Redis,
  configuration: Configuration,
  asks: readonly Ask[],
  open: readonly Open[],
  ends: ReadEnds,
): Promise<Matched[]> {
  const courier = asks[0]?.shipment.meta.courier ?? "";
  const events = open.map(({ parked: { event } }) => ({
    ...ownReferences(courier, event),
    event,
  }));
  const candidates = await resolveReferences(redis, events.flatMap(listed));
  for (const { shipment, references } of asks) withItself(candidates, shipment, references);
  const matches = await matchEvents({ redis, configuration }, courier, events, candidates, ends);
  return open.flatMap((one, at) => {
    const match = matches[at];
    if (match?.kind !== "found") return [];
    const { candidates: matching } = match;
    if (!matching.some(({ shipmentId }) => shipmentId === one.shipment.id)) return [];
    return [{ ...one, isShared: matching.length > 1 }];
  });
}

/** An event may find a shipment by one reference while another one is still being registered. */
function withItself(
  candidates: Map<string, Candidate[]>,
  { id, meta }: HotShipment,
  references: readonly Reference[],
): void {
  for (const { key } of references) {
    const known = candidates.get(key);
    if (!known || known.some(({ shipmentId }) => shipmentId === id)) continue;
    candidates.set(key, [...known, candidateOf(id, meta)]);
  }
}

/**
 * A number that an event announces, or that finds a placeholder shipment, finds the shipment from now on.
 * @returns by shipment the numbers that its events announce
 */
async function registerNumbers(
  deps: ReleaseDeps,
  arrived: readonly Arrived[],
): Promise<Map<number, readonly NewNumber[]>> {
  const { redis } = deps;
  const news = arrived.flatMap(({ shipment, events }) => {
    const announced = events.flatMap(
      ({ event }) => event.trackingNumberChange?.newTrackingNumber ?? [],
    );
    const numbers = newNumbersOf(shipment, events);
    return numbers.length === 0 ? [] : [{ shipment, numbers, announced }];
  });
  if (news.length === 0) return NO_NUMBERS;
  await registerReferences(
    redis,
    news.flatMap(({ shipment, numbers }) => {
      const candidate = candidateOf(shipment.id, shipment.meta);
      const texts = numbers.map(({ number }) => number);
      return numbersOf(shipment, texts).map((reference) => ({ ...candidate, reference }));
    }),
  );
  await addFurtherTexts(
    redis,
    news.flatMap(({ shipment: { id, meta }, numbers }) =>
      numbers.map(({ number }) => ({
        companyId: meta.companyId,
        channelId: meta.channelId,
        shipmentId: id,
        courier: meta.courier,
        text: number,
      })),
    ),
  );
  await takeNumbers(
    redis,
    news.flatMap(({ shipment: { id, meta }, announced }) =>
      announced.map((trackingNumber) => takenNumber(id, meta, trackingNumber)),
    ),
  );
  await findConflicts(deps, arrived);
  return new Map(news.map(({ shipment, numbers }) => [shipment.id, numbers]));
}

const NO_NUMBERS: Map<number, readonly NewNumber[]> = new Map();

/** Each once, from the event that was received first. */
function newNumbersOf({ meta }: HotShipment, events: readonly Arrival[]): NewNumber[] {
  const numbers = new Map<string, number>();
  for (const { event, receivedAtMs, releasedAtMs: atMs = receivedAtMs } of events) {
    const { trackingNumber, trackingNumberChange } = event;
    const own = meta.isPlaceholder ? trackingNumber : undefined;
    for (const number of [trackingNumberChange?.newTrackingNumber, own]) {
      if (number === undefined) continue;
      numbers.set(number, Math.min(numbers.get(number) ?? atMs, atMs));
    }
  }
  return [...numbers].map(([number, atMs]) => ({ number, atMs }));
}

function takenNumber(shipmentId: number, meta: ShipmentMeta, trackingNumber: string) {
  const { channelId, courier } = meta;
  return { shipmentId, channelId, courier, trackingNumber };
}

/** Applied parked events take their ids, so that a resend is a DUPLICATE, and leave the store unless others need them. */
export async function finishReleases(
  { redis, eventsPerDay }: Pick<ReleaseDeps, "redis" | "eventsPerDay">,
  done: readonly Released[],
  nowMs: number,
): Promise<void> {
  if (done.length === 0) return;
  const layout = await seenLayout(redis, nowMs, eventsPerDay);
  const buckets = done.flatMap(({ courier, events }) =>
    events.map(({ event }) => seenBucket(courier, event.eventId)),
  );
  await rememberEvents(redis, layout, buckets);
  await dropParked(
    redis,
    done.flatMap(({ courier, events, shared }) =>
      events
        .filter(({ factKey }) => !shared.has(factKey))
        .map(({ factKey, event }) => ({
          factKey,
          references: listed(ownReferences(courier, event)),
        })),
    ),
  );
}
