/** The delivery that has waited longest beyond its time. */
import type { Redis } from "#core/platform/redis/client.ts";
import { FAILING_FROM, webhookKeys } from "#core/platform/redis/keys.ts";
import { partitionsOf, shareOf } from "#core/platform/redis/partitions.ts";
import { type Missing, orMissing } from "#core/platform/redis/unavailable-shard.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { readDeliveries } from "./deliveries.ts";

/** Endpoints whose first waiting delivery is looked at: those whose turn is next, healthy ones first. */
const ENDPOINTS_LOOKED_AT = limit(
  320,
  "endpoints whose oldest waiting delivery the overview looks at, in equal shares of the partitions",
  "those whose turn is next",
);

/**
 * Age of the oldest first attempt that waits, or lateness of the retry that is due longest, in milliseconds; 0 when none
 * waits. Retries that are not yet due wait as planned and do not count.
 * @param missing unavailable partitions are noted there and left out
 */
export async function longestOverdueMs(
  redis: Redis,
  nowMs: number,
  missing?: Missing,
): Promise<number> {
  const sinceMs = await Promise.all(
    partitionsOf("k").map((n) => {
      const keys = webhookKeys(n);
      return waitingSince(redis, keys, nowMs).catch(orMissing(redis, missing, keys.firstRing, []));
    }),
  );
  return sinceMs.flat().reduce((longest, since) => Math.max(longest, nowMs - since), 0);
}

/** Since when those of a partition wait that have waited longest. */
async function waitingSince(
  redis: Redis,
  keys: ReturnType<typeof webhookKeys>,
  nowMs: number,
): Promise<number[]> {
  const [endpoints, retries, failing] = await Promise.all([
    redis.zRange(keys.firstRing, 0, shareOf("k", ENDPOINTS_LOOKED_AT) - 1),
    redis.zRangeWithScores(keys.retryRing, 0, 0),
    redis.zRangeWithScores(keys.retryRing, FAILING_FROM, "+inf", {
      BY: "SCORE",
      LIMIT: { offset: 0, count: 1 },
    }),
  ]);
  const heads = await Promise.all(endpoints.map((id) => redis.lIndex(keys.queue(id), 0)));
  const dueMs = [...retries, ...failing].map(({ score }) =>
    score >= FAILING_FROM ? score - FAILING_FROM : score,
  );
  const firsts = await readDeliveries(
    redis,
    heads.filter((id) => id !== null),
    nowMs,
  );
  return [...firsts.map(({ createdAtMs }) => createdAtMs), ...dueMs];
}
