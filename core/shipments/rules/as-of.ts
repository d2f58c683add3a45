/**
 * A shipment as it was known at an earlier time: the fold of the facts that had been received by then, mapped as the courier's
 * catalogue said then. What was erased since stays erased, and nothing is stored for it: facts carry the time of their receipt,
 * and remaps what a code was mapped to before.
 */
import type { Fact, Mapping } from "#core/events/rules/fact.ts";
import { matchingNumber } from "#core/events/rules/reference.ts";
import { type CatalogueEntry, mapStatus } from "#core/statuses/rules/map-status.ts";
import { foldAll, type ShipmentState } from "./fold.ts";
import { type Base, FIRST_KEPT, startFrom } from "./history-limit.ts";
import { sameMappings } from "./refold.ts";

/** A change of the courier's catalogue, as a remap keeps it. */
export interface MappingChange {
  readonly id: string;
  readonly createdAtMs: number;
  readonly entries: ReadonlyArray<{
    readonly code: string;
    readonly before: CatalogueEntry | null;
    readonly after: CatalogueEntry | null;
  }>;
}

export interface KnownHistory {
  /** In the order they were applied. */
  readonly facts: readonly Fact[];
  readonly state: ShipmentState;
  readonly base: Base | null;
  readonly trackingNumber: string;
}

export interface KnownThen {
  /** In the order they were applied. */
  readonly facts: readonly Fact[];
  readonly state: ShipmentState;
  /** By key of a fact: the remap that says how it was mapped before; all others are mapped as they are stored. */
  readonly mappedBefore: ReadonlyMap<string, string>;
}

/** @param later changes of the catalogue after that time, the newest first */
export function asOf(
  { facts, state, base, trackingNumber }: KnownHistory,
  atMs: number,
  later: readonly MappingChange[],
): KnownThen {
  const knownAt = knownSince(facts, trackingNumber);
  const mappedBefore = new Map<string, string>();
  const known = facts
    .filter((_, at) => (knownAt[at] ?? 0) <= atMs)
    .map((fact) => {
      const earlier = mappedThen(fact, later);
      if (earlier === null) return fact;
      mappedBefore.set(fact.key, earlier.by);
      return { ...fact, mapping: earlier.mapping };
    });
  // What left the history stood behind the first facts: it counts as soon as one behind it does.
  const hasBase = known.length > FIRST_KEPT;
  const { state: folded } = foldAll(startFrom(hasBase ? base : null), known);
  // Without a mapped fact, then and now, the shipment is where it was created.
  const pair = folded.mapped === null && state.mapped === null ? state.pair : folded.pair;
  return { facts: known, state: { ...folded, pair }, mappedBefore };
}

/**
 * Since when the shipment has had each fact (UTC milliseconds): since it was received, or, if it was parked, since the event was
 * received that released it. That is the shipment's first event, or the one that announced the number it was parked under.
 */
function knownSince(facts: readonly Fact[], trackingNumber: string): number[] {
  const own = facts.filter(({ parked }) => parked !== true);
  const firstMs = own.reduce(
    (least, { receivedAtMs }) => Math.min(least, receivedAtMs),
    Number.POSITIVE_INFINITY,
  );
  const announced = new Map<string, number>();
  for (const { event, receivedAtMs, parked } of facts) {
    const number = event.trackingNumberChange?.newTrackingNumber;
    if (number === undefined) continue;
    const form = matchingNumber(number);
    const sinceMs = parked === true ? Math.max(receivedAtMs, finite(firstMs)) : receivedAtMs;
    announced.set(form, Math.min(announced.get(form) ?? Number.POSITIVE_INFINITY, sinceMs));
  }
  announced.delete(matchingNumber(trackingNumber));
  return facts.map(({ event, receivedAtMs, parked }) => {
    if (parked !== true) return receivedAtMs;
    const number = event.externalId === undefined ? event.trackingNumber : undefined;
    const byNumber = number === undefined ? undefined : announced.get(matchingNumber(number));
    return Math.max(receivedAtMs, finite(firstMs), byNumber ?? 0);
  });
}

function finite(ms: number): number {
  return Number.isFinite(ms) ? ms : 0;
}

/**
 * Takes back, one by one, the changes of the catalogue that have reached the fact. One that has not, as in the archive, left it as
 * it was.
 * @returns null where no change has reached it
 */
function mappedThen(
  fact: Fact,
  later: readonly MappingChange[],
): { readonly mapping: Mapping | null; readonly by: string } | null {
  const { code } = fact.event.status;
  let mapping = fact.mapping;
  let by: string | null = null;
  for (const { id, entries } of later) {
    const entry = entries.find((one) => one.code === code);
    if (!entry || !sameMappings(mapping, mappingOf(entry.after, fact))) continue;
    const before = mappingOf(entry.before, fact);
    if (sameMappings(mapping, before)) continue;
    mapping = before;
    by = id;
  }
  return by === null ? null : { mapping, by };
}

function mappingOf(entry: CatalogueEntry | null, { event }: Fact): Mapping | null {
  return entry === null ? null : mapStatus(new Map([[entry.code, entry]]), event);
}
