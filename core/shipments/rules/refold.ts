/** Refolds a shipment from its whole history: after a mapping has changed, or a fact has arrived in full. */
import {
  compareFacts,
  type Fact,
  isAhead,
  type Mapping,
  orderOf,
} from "#core/events/rules/fact.ts";
import { type Catalogue, mapStatus } from "#core/statuses/rules/map-status.ts";
import { samePair } from "#core/statuses/rules/status.ts";
import { foldAll, hasBeenIn, type ShipmentState, type StateChange, withPair } from "./fold.ts";
import { type Base, startFrom } from "./history-limit.ts";

/** The history with the facts of these codes mapped as the catalogue says now; null when that changes none. */
export function remapFacts(
  history: readonly Fact[],
  codes: ReadonlySet<string>,
  catalogue: Catalogue,
): Fact[] | null {
  let changed = false;
  const facts = history.map((fact) => {
    if (!codes.has(fact.event.status.code)) return fact;
    const mapping = mapStatus(catalogue, fact.event);
    if (sameMappings(fact.mapping, mapping)) return fact;
    changed = true;
    return { ...fact, mapping };
  });
  return changed ? facts : null;
}

export function sameMappings(one: Mapping | null, other: Mapping | null): boolean {
  if (one === null || other === null) return one === other;
  return samePair(one, other) && one.terminal === other.terminal;
}

export interface Refolded {
  readonly state: ShipmentState;
  /** The change of the current pair, carried by the fact that decides it now; null when the pair stays. */
  readonly change: StateChange | null;
  /** The fact of the history that decides the pair now, else the latest one: a rewrite carries it. */
  readonly decisive: Fact | null;
}

/** @param base of the facts that have left the history; null = none have */
export function refold(
  before: ShipmentState,
  facts: readonly Fact[],
  base: Base | null = null,
): Refolded {
  const { state: folded } = foldAll(startFrom(base), facts);
  // Without a mapped fact the shipment is where it was before its first one.
  const isUntouched = before.mapped === null && folded.mapped === null;
  const pair = isUntouched ? before.pair : folded.pair;
  const changed = !samePair(before.pair, pair);
  const firstOccurrence = changed && !hasBeenIn(before, pair);
  // The pairs that a shipment has been in cannot be derived from its facts: they depend on the order of arrival.
  const entered = firstOccurrence ? withPair(before.entered, pair) : before.entered;
  const state = { ...folded, pair, entered };
  const key = (state.mapped ?? state.last)?.by.key;
  const decisive = facts.find((fact) => fact.key === key) ?? latestOf(facts);
  if (decisive === null || !changed) return { state, change: null, decisive };
  const change = { fact: decisive, before: before.pair, after: pair, changed, firstOccurrence };
  return { state, change, decisive };
}

/**
 * A fact ahead of its time decides something in the state. Only then can the order by the earlier one of occurredAt and
 * receivedAt make another state of the same facts than an order by occurredAt alone.
 */
export function isDecidedAhead(state: ShipmentState): boolean {
  const { last, mapped, estimate, proof, pickupPoint, actionUrl, parcels } = state;
  const said = [last, mapped, estimate, proof, pickupPoint, actionUrl, ...Object.values(parcels)];
  return said.some((one) => one !== null && isAhead(one.by));
}

function latestOf(facts: readonly Fact[]): Fact | null {
  return facts.reduce<Fact | null>(
    (latest, fact) => (latest && compareFacts(orderOf(latest), orderOf(fact)) > 0 ? latest : fact),
    null,
  );
}

/** How the unmapped events of one code have become more or fewer. */
export interface UnmappedDelta {
  readonly code: string;
  /** As the courier sent it last. */
  readonly description: string;
  readonly events: number;
  /** Unmapped events of the code are left in the shipment. */
  readonly present: boolean;
  /** Our clock, UTC milliseconds. */
  readonly firstMs: number;
  readonly lastMs: number;
}

/** What the facts that stand in the place of others do to the unmapped codes; mapped facts count for nothing. */
export function unmappedDeltas(replaced: readonly Fact[], facts: readonly Fact[]): UnmappedDelta[] {
  const before = unmappedByCode(replaced);
  const after = unmappedByCode(facts);
  if (before.size === 0 && after.size === 0) return [];
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((code) => {
    const old = before.get(code) ?? [];
    const now = after.get(code) ?? [];
    if (old.length === now.length) return [];
    const times = [...old, ...now].map(({ receivedAtMs }) => receivedAtMs);
    return [
      {
        code,
        description: (now.at(-1) ?? old.at(-1))?.event.status.description ?? "",
        events: now.length - old.length,
        present: now.length > 0,
        firstMs: Math.min(...times),
        lastMs: Math.max(...times),
      },
    ];
  });
}

const NONE: ReadonlyMap<string, Fact[]> = new Map();

function unmappedByCode(facts: readonly Fact[]): ReadonlyMap<string, Fact[]> {
  if (facts.every(({ mapping }) => mapping !== null)) return NONE;
  const unmapped = facts.filter(({ mapping }) => mapping === null);
  return Map.groupBy(unmapped, ({ event }) => event.status.code);
}
