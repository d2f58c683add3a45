const DAY_MS = 86_400_000;

/** The UTC day, `YYYY-MM-DD`, `days` days before an instant. */
export function daysAgo(days: number, nowMs = Date.now()): string {
  return new Date(nowMs - days * DAY_MS).toISOString().slice(0, 10);
}
