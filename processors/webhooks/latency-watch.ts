/** Follows how long the answers of each endpoint take. Each process finds out on its own. */
import {
  afterAnswer,
  type LatencyTrend,
  newLatencyTrend,
} from "#core/webhooks/rules/latency-trend.ts";

/** An endpoint without an answer for so long is forgotten. */
const REMEMBERED_MS = 300_000;

/** By endpoint, the one that answered last at the end. */
export type LatencyWatch = Map<string, { readonly trend: LatencyTrend; readonly atMs: number }>;

/**
 * An answer has come.
 * @param nowMs of `performance.now()`
 * @returns whether answers of this endpoint have begun to take longer
 */
export function noteLatency(
  watch: LatencyWatch,
  endpointId: string,
  tookMs: number,
  nowMs: number,
): boolean {
  for (const [id, { atMs }] of watch) {
    if (atMs > nowMs - REMEMBERED_MS) break;
    watch.delete(id);
  }
  const before = watch.get(endpointId)?.trend ?? newLatencyTrend(nowMs);
  const { trend, isSlower } = afterAnswer(before, tookMs, nowMs);
  watch.delete(endpointId);
  watch.set(endpointId, { trend, atMs: nowMs });
  return isSlower;
}
