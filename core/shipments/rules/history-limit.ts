/**
 * A shipment's history has a limit; its state has none. Past the limit the first facts and the latest ones stay. What
 * leaves in between is folded into a base: the state keeps all that it said, a re-fold starts from it, and its keys are
 * remembered, so that an entry which is delivered again is known.
 */
import type { Fact } from "#core/events/rules/fact.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { foldAll, initialState, type ShipmentState } from "./fold.ts";

/**
 * Facts of a history. A parcel has about ten, one that crosses continents fifty. Measured: a commit of a shipment that is
 * nearly full costs three times one of eight facts (0.35 ms of CPU beside 0.1), and its history is read in about 4 ms.
 */
export const HISTORY_LIMIT = limit(
  1_000,
  "facts in a shipment's history",
  "the oldest and latest stay, the rest goes into a base (`history-limit.ts`); state, webhooks, ledger and analytics count every fact",
);
/** How the journey began stays in sight. */
export const FIRST_KEPT = limit(
  100,
  "first facts that stay when a history is full",
  "the rest goes into the base",
);
/** The latest that stay beside them: many leave at once, since that rewrites the whole history. */
const LATEST_KEPT = limit(
  650,
  "latest facts that stay when a history is full",
  "the rest goes into the base",
);
/**
 * Keys of facts that have left, the latest ones: no entry is delivered again after so many others of its shipment. Read with
 * every commit of such a shipment, which costs 1 ms then.
 */
const DROPPED_KEYS_LIMIT = limit(
  5_000,
  "keys of facts that left a history",
  "an entry redelivered after so many others of its shipment would count twice; a replay of one past the memory of ids leaves a difference in the ledger",
);

/**
 * A summary of the facts that have left a history; `keys` are their keys, in the order in which they left. The pairs that
 * the shipment has been in are kept in its state only.
 */
export type Base = ShipmentState;

export interface TrimmedHistory {
  readonly kept: readonly Fact[];
  readonly base: Base;
}

/** @param facts of a history that is over the limit, in the order they were applied */
export function trimHistory(facts: readonly Fact[], before: Base | null): TrimmedHistory {
  const end = facts.length - LATEST_KEPT;
  const leaving = facts.slice(FIRST_KEPT, end);
  const { state } = foldAll(startFrom(before), leaving);
  const keys = [...(before?.keys ?? []), ...leaving.map(({ key }) => key)];
  return {
    kept: [...facts.slice(0, FIRST_KEPT), ...facts.slice(end)],
    base: {
      ...state,
      keys: keys.slice(-DROPPED_KEYS_LIMIT),
      dropped: state.dropped + leaving.length,
      entered: [],
    },
  };
}

/** The state that a fold of the facts in a history starts from. */
export function startFrom(base: Base | null): ShipmentState {
  return base === null ? initialState("PENDING") : { ...base, keys: [] };
}
