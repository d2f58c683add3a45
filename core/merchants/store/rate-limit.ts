/** Request budget of a merchant channel and suspension of abusive API keys (document 1, "Limits"); exact across processes. */

import type { ApiKey, Channel } from "#core/configuration/store/configuration.ts";
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import { admissionKeys } from "#core/platform/redis/keys.ts";
import { limit } from "#core/platform/schema/limit.ts";
import admitSource from "./admit.lua" with { type: "text" };

const admitScript = script(admitSource);

/** The whole per-minute amount is added at once at the next cycle. */
const CYCLE_MS = 60_000;
const REJECTIONS_THAT_SUSPEND = limit(
  10,
  "rate-limited answers to an API key that suspend it",
  "403 until the suspension ends",
);
const REJECTIONS_WITHIN_MS = limit(
  5 * 60_000,
  "time in which so many rate-limited answers suspend an API key",
  "the count starts again",
);
const SUSPENSION_MS = limit(60 * 60_000, "suspension of an API key", "it is accepted again");

export interface Admission {
  readonly verdict: "admitted" | "limited" | "suspended";
  readonly limit: number;
  readonly remaining: number;
  /** Service clock, UTC milliseconds. */
  readonly refillAtMs: number;
  /** 0 = not suspended. */
  readonly suspendedUntilMs: number;
}

const VERDICTS = ["limited", "admitted", "suspended"] as const;

/** Takes one token of the channel's bucket for a request made with the key. */
export async function admitRequest(
  redis: Redis,
  channel: Channel,
  apiKey: ApiKey,
  nowMs: number,
): Promise<Admission> {
  const keys = admissionKeys(channel.companyId, channel.id, apiKey.id);
  const [verdict, remaining, refillAtMs, suspendedUntilMs] = await run<
    [number, number, number, number]
  >(
    redis,
    admitScript,
    [keys.bucket, keys.rejections, keys.suspension],
    [
      nowMs,
      channel.bucketSize,
      channel.refillRate,
      CYCLE_MS,
      REJECTIONS_THAT_SUSPEND,
      REJECTIONS_WITHIN_MS,
      SUSPENSION_MS,
    ].map(String),
  );
  return {
    verdict: VERDICTS[verdict] ?? "limited",
    limit: channel.bucketSize,
    remaining,
    refillAtMs,
    suspendedUntilMs,
  };
}

/** Until when the key is suspended, UTC milliseconds of the service clock; 0 = it is not. */
export async function suspendedUntilMs(
  redis: Redis,
  channel: Channel,
  apiKey: ApiKey,
  nowMs: number,
): Promise<number> {
  const { suspension } = admissionKeys(channel.companyId, channel.id, apiKey.id);
  const untilMs = Number((await redis.get(suspension)) ?? 0);
  return nowMs < untilMs ? untilMs : 0;
}

/** Lets a suspended key work again, and forgets what suspended it. @returns whether it was suspended */
export async function liftSuspension(
  redis: Redis,
  { companyId, id }: Channel,
  apiKeyId: number,
): Promise<boolean> {
  const { suspension, rejections } = admissionKeys(companyId, id, apiKeyId);
  const lifted = await redis.del(suspension);
  await redis.del(rejections);
  return lifted === 1;
}

export interface Budget {
  /** Requests that the channel may make now. */
  readonly remaining: number;
  /** When the bucket is filled next, service clock, UTC milliseconds; null while it is full. */
  readonly refillAtMs: number | null;
}

/** The channel's bucket as the next request would find it, as `admit.lua` computes it. */
export async function readBudget(redis: Redis, channel: Channel, nowMs: number): Promise<Budget> {
  const { bucket } = admissionKeys(channel.companyId, channel.id, 0);
  const [tokens, start] = await redis.hmGet(bucket, ["t", "s"]);
  const { bucketSize, refillRate } = channel;
  if (!tokens || !start) return { remaining: bucketSize, refillAtMs: null };
  const cycles = Math.max(0, Math.floor((nowMs - Number(start)) / CYCLE_MS));
  const remaining = Math.min(bucketSize, Number(tokens) + cycles * refillRate);
  const isFull = remaining === bucketSize;
  return {
    remaining,
    refillAtMs: isFull ? null : Number(start) + (cycles + 1) * CYCLE_MS,
  };
}

/** Keys of a channel that are suspended now, with the end of it, service clock, UTC milliseconds. */
export async function readSuspensions(
  redis: Redis,
  { companyId, id }: Channel,
  apiKeyIds: readonly number[],
  nowMs: number,
): Promise<ReadonlyMap<number, number>> {
  if (apiKeyIds.length === 0) return new Map();
  const keys = apiKeyIds.map((apiKeyId) => admissionKeys(companyId, id, apiKeyId).suspension);
  const untils = await redis.mGet(keys);
  const suspended = apiKeyIds.map((apiKeyId, at) => [apiKeyId, Number(untils[at] ?? 0)] as const);
  return new Map(suspended.filter(([, untilMs]) => nowMs < untilMs));
}
