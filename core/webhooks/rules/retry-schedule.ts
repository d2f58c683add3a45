import { limit } from "#core/platform/schema/limit.ts";

/**
 * Retry schedule of webhook deliveries (document 3, "Limits").
 *
 * | after attempt | wait       | next attempt, from the first   |
 * |---------------|------------|--------------------------------|
 * | 1             | 1 minute   | 1 min                          |
 * | 2             | 5 minutes  | 6 min                          |
 * | 3             | 15 minutes | 21 min                         |
 * | 4             | 1 hour     | 1 h 21 min                     |
 * | 5             | 3 hours    | 4 h 21 min                     |
 * | 6             | 6 hours    | 10 h 21 min                    |
 * | 7             | 12 hours   | 22 h 21 min (eighth and last)  |
 * | 8             | none       | moved to failed                |
 */
const MINUTE_MS = 60_000;
const WAITS_MS = [1, 5, 15, 60, 180, 360, 720].map((minutes) => minutes * MINUTE_MS);

/** Plus or minus 20 percent on each delay. */
const JITTER = 0.2;
/** `Retry-After` can lengthen the wait up to 12 hours. */
const RETRY_AFTER_LIMIT_MS = limit(
  12 * 60 * MINUTE_MS,
  "wait that a receiver's `Retry-After` may ask for",
  "the limit counts",
);

/**
 * Milliseconds to wait after attempt `attempt` (from 1), or null when it was the last one.
 * @param random a number in [0, 1), the source of the jitter
 * @param retryAfterMs what the receiver asked for; it only lengthens the wait, to 12 hours at most
 */
export function retryWaitMs(
  attempt: number,
  random: number,
  retryAfterMs: number | null,
): number | null {
  const nominal = WAITS_MS[attempt - 1];
  if (nominal === undefined) return null;
  const scheduled = Math.round(nominal * (1 - JITTER + 2 * JITTER * random));
  if (retryAfterMs === null) return scheduled;
  return Math.max(scheduled, Math.min(retryAfterMs, RETRY_AFTER_LIMIT_MS));
}

/**
 * Milliseconds to wait after an internal error prevented attempt `attempt` (from 1): the same as after a failed attempt.
 * Past the end of the schedule the last wait is repeated, because an internal error never ends a delivery.
 */
export function faultWaitMs(attempt: number, random: number): number {
  return retryWaitMs(Math.min(attempt, WAITS_MS.length), random, null) ?? 0;
}

/** Reads a `Retry-After` header, seconds or HTTP date, into milliseconds from now; null when unreadable or past. */
export function parseRetryAfter(header: string | undefined, nowMs: number): number | null {
  if (header === undefined) return null;
  const text = header.trim();
  // No limit on the digits: the schedule caps the wait.
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const at = /^[A-Za-z]{3,9},? /.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) || at <= nowMs ? null : at - nowMs;
}
