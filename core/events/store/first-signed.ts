/** When the first event of each courier was accepted in a message whose signature was right: the proof that its signing works. */
import type { Redis } from "#core/platform/redis/client.ts";
import { FIRST_SIGNED_KEY } from "#core/platform/redis/keys.ts";

/** The first time counts. */
export async function noteFirstSigned(redis: Redis, courier: string, atMs: number): Promise<void> {
  await redis.hSetNX(FIRST_SIGNED_KEY, courier, String(atMs));
}

/** By courier, UTC milliseconds. */
export async function readFirstSigned(redis: Redis): Promise<ReadonlyMap<string, number>> {
  const rows = Object.entries(await redis.hGetAll(FIRST_SIGNED_KEY));
  return new Map(rows.map(([courier, atMs]) => [courier, Number(atMs)]));
}
