/** Times counted by bucket, each a fifth wider than the one before: a quantile is read from them to within 10 percent. */

const GROWTH = 1.2;
/** 10 seconds and somewhat more: no request takes longer. */
const LAST_BUCKET = 52;

/** The bucket of a time in milliseconds, as text: `b0` holds what took less than one. */
export function bucketOf(ms: number): string {
  const bucket = ms < 1 ? 0 : 1 + Math.floor(Math.log(ms) / Math.log(GROWTH));
  return `b${Math.min(bucket, LAST_BUCKET)}`;
}

/**
 * The time below which a share of the counted ones lie, in milliseconds; null when nothing was counted.
 * @param counts by bucket; other fields are left alone
 */
export function quantileOf(counts: Readonly<Record<string, number>>, share: number): number | null {
  const buckets = Array.from({ length: LAST_BUCKET + 1 }, (_, n) => counts[`b${n}`] ?? 0);
  const total = buckets.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let seen = 0;
  const at = buckets.findIndex((count) => {
    seen += count;
    return seen >= share * total;
  });
  return middleOf(at);
}

function middleOf(bucket: number): number {
  return bucket === 0 ? 0 : Math.round(GROWTH ** (bucket - 0.5) * 10) / 10;
}
