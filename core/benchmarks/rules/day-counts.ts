/** How many deliveries took how many days: exact statistics of small whole numbers without keeping each of them. */

/** Pairs of days and a positive number of deliveries, by ascending days. */
export type DayCounts = readonly (readonly [days: number, deliveries: number])[];

export function sampleSize(counts: DayCounts): number {
  return counts.reduce((sum, [, deliveries]) => sum + deliveries, 0);
}

/** Mean with one decimal; null without a sample. */
export function meanDays(counts: DayCounts): number | null {
  const size = sampleSize(counts);
  if (size === 0) return null;
  const total = counts.reduce((sum, [days, deliveries]) => sum + days * deliveries, 0);
  return Math.round((total * 10) / size) / 10;
}

/** Nearest rank: the value at rank ceil(percent / 100 * size) of the sorted sample; null without a sample. */
export function percentileDays(counts: DayCounts, percent: number): number | null {
  return valueAt(counts, Math.ceil((percent * sampleSize(counts)) / 100));
}

export function sumCounts(parts: readonly DayCounts[]): DayCounts {
  const sums = new Map<number, number>();
  for (const [days, deliveries] of parts.flat()) sums.set(days, (sums.get(days) ?? 0) + deliveries);
  return [...sums].sort(([one], [other]) => one - other);
}

/** Both ends are values of the sample. */
export interface DayInterval {
  readonly low: number;
  readonly high: number;
}

/** Half of what may lie outside a 95 % interval, on either side. */
const TAIL = 0.025;
/** Samples up to this size are judged by the exact binomial distribution, larger ones by its normal limit. */
const EXACT_SIZE_LIMIT = 1_000;
const NORMAL_QUANTILE = 1.959964;

/**
 * 95 % confidence interval of the median by order statistics: the values at ranks k and n + 1 - k of the sorted sample,
 * k being the largest rank with P(Binomial(n, 1/2) < k) <= 2.5 %. It supposes nothing of the distribution. Null under 6
 * deliveries, where even the whole range covers less.
 */
export function medianInterval(counts: DayCounts): DayInterval | null {
  const size = sampleSize(counts);
  const rank = size > EXACT_SIZE_LIMIT ? normalRank(size) : exactRank(size);
  const low = valueAt(counts, rank);
  const high = valueAt(counts, size + 1 - rank);
  return low === null || high === null ? null : { low, high };
}

function exactRank(size: number): number {
  // 2^-1000 is still a normal number, so the terms are taken as they are.
  let term = 0.5 ** size;
  let below = term;
  let rank = 0;
  while (below <= TAIL) {
    rank += 1;
    term *= (size - rank + 1) / rank;
    below += term;
  }
  return rank;
}

function normalRank(size: number): number {
  return Math.floor((size + 1 - NORMAL_QUANTILE * Math.sqrt(size)) / 2);
}

function valueAt(counts: DayCounts, rank: number): number | null {
  let seen = 0;
  for (const [days, deliveries] of counts) {
    seen += deliveries;
    if (rank >= 1 && seen >= rank) return days;
  }
  return null;
}
