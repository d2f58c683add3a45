/** When a test event of each endpoint was delivered last. */
import type { Redis } from "#core/platform/redis/client.ts";
import { VERIFIED_ENDPOINTS_KEY } from "#core/platform/redis/keys.ts";

export async function noteVerified(redis: Redis, endpointId: string, nowMs: number): Promise<void> {
  await redis.hSet(VERIFIED_ENDPOINTS_KEY, endpointId, String(nowMs));
}

export async function forgetVerified(redis: Redis, endpointId: string): Promise<void> {
  await redis.hDel(VERIFIED_ENDPOINTS_KEY, endpointId);
}

/** Of endpoints, the last time that one of them was verified, UTC milliseconds; null = none was. */
export async function readVerified(
  redis: Redis,
  endpointIds: readonly string[],
): Promise<number | null> {
  if (endpointIds.length === 0) return null;
  const times = await redis.hmGet(VERIFIED_ENDPOINTS_KEY, [...endpointIds]);
  const known = times.flatMap((atMs) => (atMs ? [Number(atMs)] : []));
  return known.length === 0 ? null : Math.max(...known);
}
