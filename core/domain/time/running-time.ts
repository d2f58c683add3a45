/**
 * Time limits on others while Waybill itself is down: they stand still, so they are measured without the time in which no
 * processors were running.
 */
export interface Downtime {
  readonly fromMs: number;
  readonly toMs: number;
}

/** How long processors were running between two moments, milliseconds. */
export function runningMs(downtimes: readonly Downtime[], fromMs: number, toMs: number): number {
  const downMs = downtimes.reduce((sum, downtime) => {
    const overlapMs = Math.min(toMs, downtime.toMs) - Math.max(fromMs, downtime.fromMs);
    return sum + Math.max(0, overlapMs);
  }, 0);
  return Math.max(0, toMs - fromMs - downMs);
}
