/**
 * What members of a company see of the whole network's deliveries: no figure of fewer than 20, as in the merchant API. Where the
 * sample of a row is smaller, the row is left out, because the courier's name would tell that there are some.
 */
import type { LaneInsight } from "#analytics/insights.ts";
import { MIN_SAMPLE } from "#core/domain/benchmarks/lane.ts";
import type { Caller } from "#panel/caller.ts";

export function shownTo<T extends { readonly deliveries: number }>(
  { kind }: Caller,
  rows: readonly T[],
): T[] {
  return rows.filter(({ deliveries }) => kind === "operator" || deliveries >= MIN_SAMPLE);
}

/** A lane has samples within: its single days, and the deliveries with a departure. */
export function laneShownTo(caller: Caller, rows: readonly LaneInsight[]): LaneInsight[] {
  const shown = shownTo(caller, rows);
  return caller.kind === "operator" ? shown : shown.map(withoutSmallSamples);
}

function withoutSmallSamples(row: LaneInsight): LaneInsight {
  const isSmall = row.transitDeliveries < MIN_SAMPLE;
  return { ...row, leads: [], ...(isSmall && { transitMedian: null, transitDeliveries: 0 }) };
}
