/**
 * The current state of a shipment is a fold over its facts: the same facts in any order and any multiplicity give
 * the same state (invariant 3). Pure; the store keeps the state and compares versions.
 */

import {
  compareFacts,
  type Fact,
  type FactOrder,
  happenedAtMs,
  orderOf,
} from "#core/events/rules/fact.ts";
import { matchingNumber } from "#core/events/rules/reference.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { type Status, type StatusPair, samePair } from "#core/statuses/rules/status.ts";

/** Further tracking numbers of a shipment that events have announced; later ones find it and are not listed. */
const ALIASES_LIMIT = limit(
  100,
  "further tracking numbers of a shipment",
  "later numbers find it and are not listed",
);
/** Parcels of a shipment whose own status is kept; the facts of further ones count for the shipment alone. */
const PARCELS_LIMIT = limit(
  1_000,
  "parcels of a shipment with a status of their own",
  "later parcels count for the shipment alone",
);

/** A value together with the fact that said it, so that a later fact replaces it and an earlier one does not. */
interface Said<T> {
  readonly by: FactOrder;
  readonly value: T;
}

export interface Estimate {
  readonly date: string | null;
  readonly from: string | null;
  readonly to: string | null;
}

export interface Proof {
  readonly deliveredTo: string | null;
  readonly signedBy: string | null;
  readonly podUrl: string | null;
}

export interface PickupPoint {
  readonly id: string | null;
  readonly name: string | null;
  readonly address: string | null;
  readonly postalCode: string | null;
  readonly countryCode: string | null;
  readonly availableUntil: string | null;
}

export interface ShipmentState {
  /** The status and detail the shipment is in. Before the first mapped fact: WAITING_TO_COMPUTE or PENDING. */
  readonly pair: StatusPair;
  /** The latest fact of all: `statusDate` and `statusPlace` come from it. */
  readonly last: Said<{ readonly place: string | null }> | null;
  /** The latest mapped fact: the pair comes from it. */
  readonly mapped: Said<StatusPair> | null;
  /** Keys of the facts folded in that stand in the history, sorted. */
  readonly keys: readonly string[];
  /** Facts folded in that have left the history (`history-limit.ts`). */
  readonly dropped: number;
  /** Pairs of every mapped fact as `STATUS:detail`, sorted: what a remap looks for. */
  readonly pairs: readonly string[];
  /**
   * Pairs that the shipment has been in, as `STATUS:detail`, sorted, without those of a new shipment; `first_occurrence`
   * checks them. It depends on the order of arrival, as sends do, and is the only member that invariant 3 excludes.
   */
  readonly entered: readonly string[];
  /** Document 2, data rule 3: the estimate on the most recent event that carries `delivery`. */
  readonly estimate: Said<Estimate> | null;
  readonly proof: Said<Proof> | null;
  readonly pickupPoint: Said<PickupPoint> | null;
  readonly actionUrl: Said<string> | null;
  /** Tracking numbers the shipment is also known by, sorted (data rule 1). */
  readonly aliases: readonly string[];
  /** Highest `attemptNumber` said; `failedAttempts` counts facts where the courier numbers none. */
  readonly attemptNumber: number;
  readonly failedAttempts: number;
  readonly exceptions: number;
  readonly unmapped: number;
  readonly isReturn: boolean;
  /** UTC milliseconds of the first DEPARTED fact: transit runs from it. */
  readonly departedAtMs: number | null;
  /** Per-parcel pair, by the matching form of `parcel.trackingNumber`; 0.1.0 wrote it as it was given. */
  readonly parcels: Readonly<Record<string, Said<StatusPair>>>;
}

export function initialState(
  status: Extract<Status, "WAITING_TO_COMPUTE" | "PENDING">,
): ShipmentState {
  return {
    pair: { status, detail: 0 },
    last: null,
    mapped: null,
    keys: [],
    dropped: 0,
    pairs: [],
    entered: [],
    estimate: null,
    proof: null,
    pickupPoint: null,
    actionUrl: null,
    aliases: [],
    attemptNumber: 0,
    failedAttempts: 0,
    exceptions: 0,
    unmapped: 0,
    isReturn: false,
    departedAtMs: null,
    parcels: {},
  };
}

/** What one fact did to the shipment; input of every webhook decision. */
export interface StateChange {
  readonly fact: Fact;
  readonly before: StatusPair;
  readonly after: StatusPair;
  /** The current pair changed by this fact. */
  readonly changed: boolean;
  /** The current pair changed to one that the shipment had never been in (document 3, "Trigger semantics"). */
  readonly firstOccurrence: boolean;
}

export interface Folded {
  readonly state: ShipmentState;
  readonly change: StateChange;
}

/** What one fact did, among others. */
export type FoldedFact = Pick<Folded, "change">;

/** Folds one fact in, or returns null when the shipment knows it already. */
export function fold(state: ShipmentState, fact: Fact): Folded | null {
  const { keys } = state;
  const at = insertionIndex(keys, fact.key);
  if (keys[at] === fact.key) return null;
  return apply(state, fact, keys.toSpliced(at, 0, fact.key));
}

/** Where a key stands among sorted ones, or belongs. */
function insertionIndex(keys: readonly string[], key: string): number {
  let [from, to] = [0, keys.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((keys[middle] ?? "") < key) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** @param keys with the fact's own, or as they were where they are put right at the end */
function apply(state: ShipmentState, fact: Fact, keys: readonly string[]): Folded {
  const by = orderOf(fact);
  const { event, mapping } = fact;
  const mapped = mapping
    ? later(state.mapped, { by, value: { status: mapping.status, detail: mapping.detail } })
    : state.mapped;
  const pair = mapped?.value ?? state.pair;
  const proof = proofOf(event.delivery);
  const departedAtMs =
    mapping?.status === "DEPARTED"
      ? Math.min(state.departedAtMs ?? Number.POSITIVE_INFINITY, happenedAtMs(fact))
      : state.departedAtMs;
  const changed = !samePair(state.pair, pair);
  const firstOccurrence = changed && !hasBeenIn(state, pair);
  const next: ShipmentState = {
    pair,
    last: later(state.last, { by, value: { place: event.location?.name ?? null } }),
    mapped,
    keys,
    dropped: state.dropped,
    pairs: withPair(state.pairs, mapping),
    entered: firstOccurrence ? withPair(state.entered, pair) : state.entered,
    estimate: event.delivery
      ? later(state.estimate, { by, value: estimateOf(event.delivery) })
      : state.estimate,
    proof: proof ? later(state.proof, { by, value: proof }) : state.proof,
    pickupPoint: event.pickupPoint
      ? later(state.pickupPoint, { by, value: pickupPointOf(event.pickupPoint) })
      : state.pickupPoint,
    actionUrl: event.recipientActionUrl
      ? later(state.actionUrl, { by, value: event.recipientActionUrl })
      : state.actionUrl,
    aliases: withAlias(state.aliases, event.trackingNumberChange?.newTrackingNumber),
    attemptNumber: Math.max(state.attemptNumber, event.delivery?.attemptNumber ?? 0),
    failedAttempts: state.failedAttempts + Number(mapping?.status === "FAILED_ATTEMPT"),
    exceptions: state.exceptions + Number(mapping?.status === "EXCEPTION"),
    unmapped: state.unmapped + Number(mapping === null),
    isReturn: state.isReturn || event.isReturn === true,
    departedAtMs,
    parcels: withParcel(state.parcels, fact, by),
  };
  return {
    state: next,
    change: {
      fact,
      before: state.pair,
      after: pair,
      changed,
      firstOccurrence,
    },
  };
}

/** Every new shipment starts in these (design: WAITING_TO_COMPUTE until its references are registered, then PENDING). */
const FIRST_PAIRS: readonly string[] = ["WAITING_TO_COMPUTE:0", "PENDING:0"];

export function hasBeenIn({ entered }: ShipmentState, pair: StatusPair): boolean {
  const name = nameOf(pair);
  return FIRST_PAIRS.includes(name) || entered.includes(name);
}

/** Sorted names of pairs, with the given one added if it is new. */
export function withPair(names: readonly string[], pair: StatusPair | null): readonly string[] {
  if (pair === null) return names;
  const name = nameOf(pair);
  return names.includes(name) ? names : [...names, name].sort();
}

function nameOf({ status, detail }: StatusPair): string {
  return `${status}:${detail}`;
}

/** Facts for which no set of keys is made. */
const FEW = 4;

/** Folds facts in, each once, in the order they happened. */
export function foldAll(
  from: ShipmentState,
  facts: readonly Fact[],
): { readonly state: ShipmentState; readonly folded: readonly FoldedFact[] } {
  const folded: FoldedFact[] = [];
  let state = from;
  const keys = facts.length <= FEW ? null : new Set(from.keys);
  for (const fact of inOrder(facts)) {
    if (keys?.has(fact.key)) continue;
    keys?.add(fact.key);
    // Taken up one by one many keys would cost the square of their number.
    const next = keys ? apply(state, fact, state.keys) : fold(state, fact);
    if (!next) continue;
    state = next.state;
    folded.push(next);
  }
  if (keys && folded.length > 0) state = { ...state, keys: [...keys].sort() };
  return { state, folded };
}

function inOrder(facts: readonly Fact[]): readonly Fact[] {
  if (facts.length < 2) return facts;
  return [...facts].sort((one, other) => compareFacts(orderOf(one), orderOf(other)));
}

/** Attempts made so far: the courier's own number where it gives one, else the failed attempts seen. */
export function attemptsOf(state: ShipmentState): number {
  return Math.max(state.attemptNumber, state.failedAttempts);
}

function later<T>(known: Said<T> | null, said: Said<T>): Said<T> {
  return known && compareFacts(known.by, said.by) >= 0 ? known : said;
}

function withAlias(aliases: readonly string[], added: string | undefined): readonly string[] {
  if (added === undefined || aliases.includes(added) || aliases.length >= ALIASES_LIMIT) {
    return aliases;
  }
  return [...aliases, added].sort();
}

function withParcel(
  parcels: ShipmentState["parcels"],
  fact: Fact,
  by: FactOrder,
): ShipmentState["parcels"] {
  const given = fact.event.parcel?.trackingNumber;
  if (given === undefined || !fact.mapping) return parcels;
  const number = matchingNumber(given);
  const known = saidOf(parcels, number);
  if (!known && Object.keys(parcels).length >= PARCELS_LIMIT) return parcels;
  const { status, detail } = fact.mapping;
  // 0.1.0 may have kept an earlier fact, or a later one, under the text as it was given.
  const older = number === given ? null : saidOf(parcels, given);
  const said = later(known, { by, value: { status, detail } });
  return { ...parcels, [number]: older ? later(older, said) : said };
}

/** A courier may number a parcel "constructor". */
function saidOf(parcels: ShipmentState["parcels"], number: string): Said<StatusPair> | null {
  return Object.hasOwn(parcels, number) ? (parcels[number] ?? null) : null;
}

type Delivery = NonNullable<Fact["event"]["delivery"]>;

function estimateOf(delivery: Delivery): Estimate {
  return {
    date: delivery.estimatedDeliveryDate ?? null,
    from: delivery.estimatedDeliveryWindow?.from ?? null,
    to: delivery.estimatedDeliveryWindow?.to ?? null,
  };
}

function proofOf(delivery: Delivery | undefined): Proof | null {
  if (!delivery || !(delivery.deliveredTo ?? delivery.signedBy ?? delivery.podUrl)) return null;
  return {
    deliveredTo: delivery.deliveredTo ?? null,
    signedBy: delivery.signedBy ?? null,
    podUrl: delivery.podUrl ?? null,
  };
}

function pickupPointOf(point: NonNullable<Fact["event"]["pickupPoint"]>): PickupPoint {
  return {
    id: point.id ?? null,
    name: point.name ?? null,
    address: point.address ?? null,
    postalCode: point.postalCode ?? null,
    countryCode: point.countryCode ?? null,
    availableUntil: point.availableUntil ?? null,
  };
}
