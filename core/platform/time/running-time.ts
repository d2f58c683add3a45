/**
 * Time limits on others while Waybill itself is down: they stand still, so they are measured without the time in which no
 * processors were running.
 */
export interface Downtime {
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * How long processors were running between two moments, milliseconds.
 * @param downtimes by when they began; they overlap where the clock was set back in between, and time counts once
 */
export function runningMs(downtimes: readonly Downtime[], fromMs: number, toMs: number): number {
  let runMs = 0;
  let reachedMs = fromMs;
  for (const downtime of downtimes) {
    runMs += Math.max(0, Math.min(toMs, downtime.fromMs) - reachedMs);
    reachedMs = Math.max(reachedMs, downtime.toMs);
  }
  return runMs + Math.max(0, toMs - reachedMs);
}
