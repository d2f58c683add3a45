/** How many requests an endpoint may have under way now, and until when it is paused. */

import type { Redis } from "#core/platform/redis/client.ts";
import { webhookKeys } from "#core/platform/redis/keys.ts";
import { readConcurrency } from "#core/webhooks/rules/concurrency.ts";

export interface EndpointLoad {
  readonly concurrency: number;
  /** UTC milliseconds; null = it is not paused. */
  readonly pausedUntilMs: number | null;
}

/** @param most its highest concurrency */
export async function readEndpointLoad(
  redis: Redis,
  partition: number,
  endpointId: string,
  most: number,
  nowMs: number,
): Promise<EndpointLoad> {
  const { concurrencies, pauses } = webhookKeys(partition);
  const [concurrency, pausedUntilMs] = await Promise.all([
    redis.hGet(concurrencies, endpointId),
    redis.zScore(pauses, endpointId),
  ]);
  const isPaused = pausedUntilMs !== null && pausedUntilMs > nowMs;
  return {
    concurrency: readConcurrency(concurrency, most, nowMs),
    pausedUntilMs: isPaused ? pausedUntilMs : null,
  };
}
