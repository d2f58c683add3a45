/** Request rate of couriers, exact over all ingest processes (document 2, "Limits"). */
import { type Redis, run, script } from "./client.ts";
import { courierRateKey } from "./keys.ts";
import source from "./scripts/courier-rate.lua" with { type: "text" };

const takeScript = script(source);

export interface RateVerdict {
  readonly allowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  /** Milliseconds until the next request can pass; 0 when it can at once. */
  readonly retryAfterMs: number;
}

/** @param subject a courier code, or `ip <address>` for callers without a valid token */
export async function takeCourierRate(
  redis: Redis,
  subject: string,
  { perSecond, burst }: { readonly perSecond: number; readonly burst: number },
  nowMs: number,
): Promise<RateVerdict> {
  const [taken = 0, remaining = 0, retryAfterMs = 0] = await run<number[]>(
    redis,
    takeScript,
    [courierRateKey(subject)],
    [String(nowMs), String(perSecond), String(burst)],
  );
  return { allowed: taken === 1, limit: burst, remaining, retryAfterMs };
}
