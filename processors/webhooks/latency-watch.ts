/** Follows how long the answers of each endpoint take. Each process finds out on its own. */
import {
  afterAnswer,
  type LatencyTrend,
  newLatencyTrend,
} from "#core/webhooks/rules/latency-trend.ts";

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
  const trends = new Map<string, { readonly trend: LatencyTrend; readonly atMs: number }>();
  let lookedAtMs = 0;

  function forgetOld(nowMs: number): void {
    lookedAtMs = nowMs;
    for (const [id, { atMs }] of trends) if (atMs <= nowMs - REMEMBERED_MS) trends.delete(id);
  }

  return {
    answered(endpointId, tookMs, nowMs) {
      if (nowMs > lookedAtMs + REMEMBERED_MS) forgetOld(nowMs);
      const known = trends.get(endpointId);
      const isNew = known === undefined || known.atMs <= nowMs - REMEMBERED_MS;
      const before = isNew ? newLatencyTrend(nowMs) : known.trend;
      const { trend, isSlower } = afterAnswer(before, tookMs, nowMs);
      trends.set(endpointId, { trend, atMs: nowMs });
      return isSlower;
    },
  };
}
