/** Follows how long the answers of each endpoint take. Each process finds out on its own. */
import {
  afterAnswer,
  type LatencyTrend,
  newLatencyTrend,
} from "#core/domain/webhooks/latency-trend.ts";

/** An endpoint without an answer for so long is forgotten. */
const REMEMBERED_MS = 300_000;

export interface LatencyWatch {
  /**
   * An answer has come.
   * @param nowMs of `performance.now()`
   * @returns whether answers of this endpoint have begun to take longer
   */
  readonly answered: (endpointId: string, tookMs: number, nowMs: number) => boolean;
}

export function watchLatency(): LatencyWatch {
  /** The one that answered longest ago comes first. */
  const trends = new Map<string, { readonly trend: LatencyTrend; readonly atMs: number }>();
  return {
    answered(endpointId, tookMs, nowMs) {
      const before = trends.get(endpointId)?.trend ?? newLatencyTrend(nowMs);
      const { trend, isSlower } = afterAnswer(before, tookMs, nowMs);
      trends.delete(endpointId);
      trends.set(endpointId, { trend, atMs: nowMs });
      for (const [id, { atMs }] of trends) {
        if (atMs > nowMs - REMEMBERED_MS) break;
        trends.delete(id);
      }
      return isSlower;
    },
  };
}
