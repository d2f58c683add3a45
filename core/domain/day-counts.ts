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

/** Nearest rank: the value at place ceil(percent / 100 * size) of the sorted sample; null without a sample. */
export function percentileDays(counts: DayCounts, percent: number): number | null {
  const rank = Math.ceil((percent * sampleSize(counts)) / 100);
  let place = 0;
  for (const [days, deliveries] of counts) {
    place += deliveries;
    if (place >= rank) return days;
  }
  return null;
}

export function sumCounts(parts: readonly DayCounts[]): DayCounts {
  const sums = new Map<number, number>();
  for (const [days, deliveries] of parts.flat()) sums.set(days, (sums.get(days) ?? 0) + deliveries);
  return [...sums].sort(([one], [other]) => one - other);
}
