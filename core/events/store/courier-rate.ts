/** Request rate of couriers, exact over all ingest processes (document 2, "Limits"). */
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import { courierRateKey } from "#core/platform/redis/keys.ts";
import source from "./courier-rate.lua" with { type: "text" };

const takeScript = script(source);

export interface RateVerdict {
  readonly allowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  /** Milliseconds until the next request can pass; 0 when it can at once. */
  readonly retryAfterMs: number;
}

export interface RateAsk {
  /** A courier code, or `ip <address>` for callers without a valid token. */
  readonly subject: string;
  readonly limit: { readonly perSecond: number; readonly burst: number };
}

/** The subject's part of the store is unavailable; others have theirs. */
export interface RateUnavailable {
  readonly error: unknown;
}

export async function takeCourierRate(
  redis: Redis,
  subject: string,
  limit: RateAsk["limit"],
  nowMs: number,
): Promise<RateVerdict> {
  const [verdict] = await takeCourierRates(redis, [{ subject, limit }], nowMs);
  if (!verdict) throw new Error("no verdict on a rate");
  if ("error" in verdict) throw verdict.error;
  return verdict;
}

/** One request each: a subject's are let through in the order given. One script call a subject. */
export async function takeCourierRates(
  redis: Redis,
  asks: readonly RateAsk[],
  nowMs: number,
): Promise<(RateVerdict | RateUnavailable)[]> {
  const verdicts: (RateVerdict | RateUnavailable)[] = new Array(asks.length);
  const bySubject = Map.groupBy(asks.keys(), (at) => asks[at]?.subject ?? "");
  const calls = [...bySubject].map(async ([subject, indices]) => {
    const limit = asks[indices[0] ?? 0]?.limit;
    if (!limit) return;
    const { perSecond, burst } = limit;
    const args = [nowMs, perSecond, burst, indices.length].map(String);
    try {
      const reply = await run<number[]>(redis, takeScript, [courierRateKey(subject)], args);
      const [taken = 0, left = 0, retryAfterMs = 0] = reply;
      indices.forEach((at, turn) => {
        const remaining = left + Math.max(0, taken - 1 - turn);
        verdicts[at] = { allowed: turn < taken, limit: burst, remaining, retryAfterMs };
      });
    } catch (error) {
      for (const at of indices) verdicts[at] = { error };
    }
  });
  await Promise.all(calls);
  return verdicts;
}
