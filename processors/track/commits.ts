/** Commits of courier facts: what is written for a shipment, and what the change log tells of it. */
import { type EventRow, eventRow } from "#core/benchmarks/rules/event-row.ts";
import { laneRow } from "#core/benchmarks/rules/lane.ts";
import type { Fact } from "#core/events/rules/fact.ts";
import {
  type FoldedFact,
  foldAll,
  type ShipmentState,
  type StateChange,
} from "#core/shipments/rules/fold.ts";
import { HISTORY_LIMIT, trimHistory } from "#core/shipments/rules/history-limit.ts";
import { refold } from "#core/shipments/rules/refold.ts";
import { type Change, type ChangeRows, describeChange } from "#core/shipments/store/change-log.ts";
import type { Commit, HotShipment } from "#core/shipments/store/shipments.ts";

/** Adds facts to a shipment: one change each, in the order they were folded. */
export function addFacts(
  from: HotShipment,
  state: ShipmentState,
  folded: readonly FoldedFact[],
  released: number,
): Commit {
  const facts = folded.map(({ change }) => change.fact);
  const before = from.state.last === null ? [] : [from.state.last.by];
  const rows = eventRows(from, facts, [...before, ...facts]);
  const changes = changesOf(from, state, folded, rows);
  return {
    from,
    state,
    facts,
    changes,
    stamp: changes.some(({ changed }) => changed),
    counts: { applied: folded.length - released, released },
  };
}

/**
 * Refolds a shipment from facts that take the place of its history, then adds others. The change log records the
 * pair where it changes by the replacement, and of every fact that was added.
 */
export function replaceHistory(
  from: HotShipment,
  history: readonly Fact[],
  facts: readonly Fact[],
  added: readonly Fact[] = [],
): Commit {
  const refolded = refold(from.state, facts, from.base);
  const { state, folded } = foldAll(refolded.state, added);
  const announced = [
    ...(refolded.change ? [refolded.change] : []),
    ...folded.map(({ change }) => change),
  ];
  const all = [...facts, ...folded.map(({ change }) => change.fact)];
  const known = new Set(history);
  const fresh = all.filter((fact) => !known.has(fact));
  const rows = eventRows(from, fresh, all);
  const changes =
    announced.length > 0
      ? changesOf(
          from,
          state,
          announced.map((change) => ({ change })),
          rows,
        )
      : rewrite(from, state, refolded.decisive, rows);
  return {
    from,
    state,
    facts: all,
    replaced: history,
    changes,
    stamp: changes.some(({ changed }) => changed),
  };
}

/** The commit with a history that keeps its limit, and in the base what leaves it. */
export function withTrimmedHistory(commit: Commit, history: readonly Fact[]): Commit {
  const { from, facts, replaced, state } = commit;
  const known = replaced === undefined ? history : [];
  if (known.length + facts.length <= HISTORY_LIMIT) return commit;
  const all = [...known, ...facts];
  const { kept, base } = trimHistory(all, from.base);
  const keys = kept.map(({ key }) => key).sort();
  return {
    ...commit,
    state: { ...state, keys, dropped: base.dropped },
    facts: kept,
    replaced: history,
    base,
  };
}

/** The last change carries the lane row as it is after all of them, and the facts of all. */
function changesOf(
  from: HotShipment,
  state: ShipmentState,
  folded: readonly FoldedFact[],
  events: readonly EventRow[],
): Change[] {
  const lane = laneRow(from.meta, from.state, state, from.version + 1);
  const last = folded.length - 1;
  return folded.map(({ change }, at) =>
    at === last ? changeOf(from, change, { lane, events }) : changeOf(from, change),
  );
}

function changeOf(
  { meta: { companyId, channelId } }: HotShipment,
  change: Omit<StateChange, "before" | "after">,
  rows: ChangeRows = NO_ROWS,
): Change {
  const { fact, changed, firstOccurrence } = describeChange(change);
  return { companyId, channelId, fact, changed, firstOccurrence, ...rows };
}

const NO_ROWS: ChangeRows = { lane: null };

function eventRows(
  from: HotShipment,
  facts: readonly Fact[],
  known: Parameters<typeof eventRow>[2],
): EventRow[] {
  return facts.map((fact) => eventRow(from.meta, fact, known, from.version + 1));
}

/** The pair stays, and what the analytics know may not: it is put right without telling anybody. */
function rewrite(
  from: HotShipment,
  state: ShipmentState,
  fact: Fact | null,
  events: readonly EventRow[],
): Change[] {
  const { meta, version } = from;
  const lane = laneRow(meta, from.state, state, version + 1);
  const before = laneRow(meta, from.state, from.state, version + 1);
  const isSame = events.length === 0 && JSON.stringify(lane) === JSON.stringify(before);
  if (fact === null || isSame) return [];
  const unchanged = { fact, changed: false, firstOccurrence: false };
  return [{ ...changeOf(from, unchanged, { lane, events }), isRewrite: true }];
}
