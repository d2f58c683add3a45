/** When a courier's events were last compared with another tracking of the same parcels, and with what result. */
import type { Redis } from "#core/platform/redis/client.ts";

/** By courier code. */
const KEY = "config:comparisons";

export interface NotedComparison {
  readonly atMs: number;
  readonly lines: number;
  readonly same: number;
}

export async function noteComparison(
  redis: Redis,
  courier: string,
  noted: NotedComparison,
): Promise<void> {
  await redis.hSet(KEY, courier, JSON.stringify(noted));
}

/** Of couriers that have one. */
export async function readComparisons(redis: Redis): Promise<Map<string, NotedComparison>> {
  const rows = await redis.hGetAll(KEY);
  return new Map(Object.entries(rows).map(([courier, text]) => [courier, JSON.parse(text)]));
}
