import { expect } from "bun:test";
import type { Redis } from "#core/platform/redis/client.ts";

/** Expects keys to expire so long after a call. @returns its reply */
export async function expectExpiry<T>(
  redis: Redis,
  keys: string | readonly string[],
  lifeMs: number,
  call: () => Promise<T>,
): Promise<T> {
  const fromMs = Date.now();
  const reply = await call();
  const untilMs = Date.now();
  for (const key of [keys].flat()) {
    expect(await redis.pExpireTime(key)).toBeWithin(fromMs + lifeMs, untilMs + lifeMs + 1);
  }
  return reply;
}
