import { limit } from "#core/platform/schema/limit.ts";

/**
 * How many requests an endpoint has under way at once: its concurrency adapts, and all processes share it (`finish.lua` keeps it,
 * `lease.lua` obeys it). Additive increase, multiplicative decrease, as TCP does it.
 *
 * | what happens                                         | the concurrency                                              |
 * |------------------------------------------------------|--------------------------------------------------------------|
 * | first delivery, or concurrency unused for 10 minutes | begins at 4                                                  |
 * | first success after a minute without any             | begins at 4: it was away, which says nothing about its limit |
 * | a success while at least half of it is in use        | grows by 2 until it falls for the first time, by 1 / itself  |
 * |                                                      | from then on                                                 |
 * | 429, 503, a timeout                                  | halves                                                       |
 * | answers take more than twice as long as they did     | falls by a fifth                                             |
 * | answers to requests that were sent before it fell    | stays: they tell of the concurrency before                   |
 * | any other failure                                    | stays: it says nothing about the load                        |
 *
 * It never falls below 4, or below the endpoint's own limit where that is less. A failing endpoint, which has not succeeded since
 * its first failure, is bounded more tightly still (`deliver-limits.ts`).
 */
export const START_CONCURRENCY = limit(
  4,
  "deliveries of an endpoint in flight at first",
  "the rest waits; it adapts",
);
export const DEFAULT_MAX_CONCURRENCY = limit(
  256,
  "deliveries of an endpoint in flight, unless `maxConcurrency` says otherwise",
  "the rest waits",
);
export const MAX_CONCURRENCY_LIMIT = limit(
  1_024,
  "what `maxConcurrency` of an endpoint may say",
  "the setup file and the panel refuse more",
);
export const MAX_PER_SECOND_LIMIT = limit(
  10_000,
  "requests to an endpoint begun in a second, as `maxPerSecond` may say",
  "the setup file and the panel refuse more",
);
/** After so long without use the receiver may be another one: the concurrency begins again. */
export const CONCURRENCY_LIFE_MS = limit(
  600_000,
  "life of a concurrency that is not in use",
  "begins again",
);
export const AWAY_MS = limit(
  60_000,
  "time without a success after which an endpoint counts as having been away",
  "its concurrency begins again with the next success",
);
const OVERLOAD_FACTOR = 0.5;
const SLOWER_FACTOR = 0.8;
/** A wrong header must not silence an endpoint for half a day: it is asked again after an hour. */
export const PAUSE_LIMIT_MS = limit(
  3_600_000,
  "longest pause that a rate-limited answer may ask for",
  "the endpoint is asked again",
);

/** What an attempt tells about the load of its receiver; null = nothing. */
export type LoadSign = "good" | "slower" | "overloaded" | null;

/**
 * @param isSlower whether answers have begun to take longer
 * @param error the phrase of `errorOf`
 */
export function loadSignOf(
  { httpStatus, error }: { readonly httpStatus: number | null; readonly error: string | null },
  isSlower: boolean,
): LoadSign {
  if (httpStatus === 429 || httpStatus === 503 || error === "timeout") return "overloaded";
  if (isSlower) return "slower";
  return error === null ? "good" : null;
}

export interface ConcurrencyChange {
  /** Successes. */
  readonly good: number;
  /** What the concurrency is multiplied by; null = it does not fall. */
  readonly factor: number | null;
  /** When the latest request that makes it fall was sent, UTC milliseconds. */
  readonly fallAtMs: number | null;
}

/** What the attempts recorded together do to the concurrency of their endpoint. */
export function concurrencyChange(
  attempts: ReadonlyArray<{ readonly sign: LoadSign; readonly atMs: number }>,
): ConcurrencyChange {
  let good = 0;
  let overloadedAtMs = Number.NEGATIVE_INFINITY;
  let slowerAtMs = Number.NEGATIVE_INFINITY;
  for (const { sign, atMs } of attempts) {
    if (sign === "good") good += 1;
    if (sign === "overloaded") overloadedAtMs = Math.max(overloadedAtMs, atMs);
    if (sign === "slower") slowerAtMs = Math.max(slowerAtMs, atMs);
  }
  if (overloadedAtMs > Number.NEGATIVE_INFINITY) {
    return { good: 0, factor: OVERLOAD_FACTOR, fallAtMs: overloadedAtMs };
  }
  if (slowerAtMs > Number.NEGATIVE_INFINITY) {
    return { good: 0, factor: SLOWER_FACTOR, fallAtMs: slowerAtMs };
  }
  return { good, factor: null, fallAtMs: null };
}

/**
 * The largest number of requests that may begin together, and how many more may begin in each second: no second sees more
 * than `maxPerSecond`, wherever it begins.
 */
export function rateBucket(maxPerSecond: number): { burst: number; perSecond: number } {
  const burst = Math.max(1, Math.floor(maxPerSecond / 20));
  return { burst, perSecond: maxPerSecond - burst + 1 };
}

/** How long a 429 with this `Retry-After` pauses its endpoint, milliseconds; 0 = not at all. */
export function pauseMs(httpStatus: number, retryAfterMs: number | null): number {
  return httpStatus === 429 ? Math.min(retryAfterMs ?? 0, PAUSE_LIMIT_MS) : 0;
}

/** A concurrency as `finish.lua` stores it: the number, where it last fell, when it fell, when it was last in use. */
export function readConcurrency(stored: string | null, most: number, nowMs: number): number {
  const [concurrency = 0, , , atMs = 0] = (stored ?? "").split(" ").map(Number);
  const kept = nowMs > atMs + CONCURRENCY_LIFE_MS ? 0 : concurrency;
  return Math.floor(Math.min(most, Math.max(START_CONCURRENCY, kept)));
}
