import type { Redis } from "#core/platform/redis/client.ts";

/** The members of a sorted set with their scores. */
export async function scoresOf(redis: Redis, key: string): Promise<Record<string, number>> {
  const members = await redis.zRangeWithScores(key, 0, -1);
  return Object.fromEntries(members.map(({ value, score }) => [value, score]));
}
