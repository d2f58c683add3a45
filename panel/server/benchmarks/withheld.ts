/**
 * What members of a company see of the whole network's deliveries: no figure of fewer than 20, as in the merchant API. Where the
 * sample of a row is smaller, the row is left out, because the courier's name would tell that there are some.
 */
import type { LaneInsight, ProvinceCourier, ProvinceInsight } from "#analytics/insights.ts";
import { MIN_SAMPLE } from "#core/benchmarks/rules/lane.ts";
import type { Caller } from "#panel/server/caller.ts";

export function shownTo<T extends { readonly deliveries: number }>(
  { kind }: Caller,
  rows: readonly T[],
): T[] {
  return rows.filter(({ deliveries }) => kind === "operator" || deliveries >= MIN_SAMPLE);
}

/**
 * One courier's destinations. The row of all couriers less the rows of those that are shown would be the figure of the others
 * together: where these have some deliveries, but fewer than 20, the smallest row that could be shown is left out too.
 * @param counts of every courier
 */
export function provincesShownTo(
  caller: Caller,
  rows: readonly ProvinceInsight[],
  courier: string,
  counts: readonly ProvinceCourier[],
): ProvinceInsight[] {
  const shown = shownTo(caller, rows);
  if (caller.kind === "operator") return shown;
  const byPrefix = Map.groupBy(counts, ({ prefix }) => prefix);
  return shown.filter(({ prefix }) => couriersToShow(byPrefix.get(prefix) ?? []).has(courier));
}

/** The same for whoever asks and in whatever order: several answers side by side tell no more than one. */
function couriersToShow(counts: readonly ProvinceCourier[]): ReadonlySet<string> {
  const isLarge = ({ deliveries }: ProvinceCourier) => deliveries >= MIN_SAMPLE;
  const large = counts
    .filter(isLarge)
    .sort(
      (one, other) => one.deliveries - other.deliveries || (one.courier < other.courier ? -1 : 1),
    );
  const others = counts.reduce((sum, one) => sum + (isLarge(one) ? 0 : one.deliveries), 0);
  const wouldTell = others > 0 && others < MIN_SAMPLE;
  return new Set(large.slice(wouldTell ? 1 : 0).map(({ courier }) => courier));
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
