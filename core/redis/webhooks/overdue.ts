/** The delivery that has waited longest beyond its time. */
import type { Redis } from "#core/redis/client/client.ts";
import { FAILING_FROM, PARTITIONS, webhookKeys } from "#core/redis/client/keys.ts";
import { readDeliveries } from "./deliveries.ts";

/** Endpoints of a partition whose first waiting delivery is looked at: those whose turn is next, healthy ones first. */
const ENDPOINTS_LOOKED_AT = 20;

/**
 * Age of the oldest first attempt that waits, or lateness of the retry that is due longest, in milliseconds; 0 when none
 * waits. Retries that are not yet due wait as planned and do not count.
 */
export async function longestOverdueMs(redis: Redis, nowMs: number): Promise<number> {
  const partitions = Array.from({ length: PARTITIONS }, (_, n) => webhookKeys(n));
  const waits = await Promise.all(
    partitions.map(async (keys) => {
      const [endpoints, retries, failing] = await Promise.all([
        redis.zRange(keys.firstRing, 0, ENDPOINTS_LOOKED_AT - 1),
        redis.zRangeWithScores(keys.retryRing, 0, 0),
        redis.zRangeWithScores(keys.retryRing, FAILING_FROM, "+inf", {
          ...{ BY: "SCORE", LIMIT: { offset: 0, count: 1 } },
        }),
      ]);
      const heads = await Promise.all(endpoints.map((id) => redis.lIndex(keys.queue(id), 0)));
      const dueMs = [...retries, ...failing].map(({ score }) =>
        score >= FAILING_FROM ? score - FAILING_FROM : score,
      );
      return { heads: heads.filter((id) => id !== null), dueMs };
    }),
  );
  const firsts = await readDeliveries(
    redis,
    waits.flatMap(({ heads }) => heads),
    nowMs,
  );
  const sinceMs = [
    ...firsts.map(({ createdAtMs }) => createdAtMs),
    ...waits.flatMap((one) => one.dueMs),
  ];
  return sinceMs.reduce((longest, since) => Math.max(longest, nowMs - since), 0);
}
