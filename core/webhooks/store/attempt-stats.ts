/** Attempts of an endpoint by hour: how many, how many of them succeeded, how long they took. They live 30 days. */
import { quantileOf } from "#core/benchmarks/rules/latency-buckets.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { webhookKeys } from "#core/platform/redis/keys.ts";

export interface AttemptHour {
  /** Hours since 1970. */
  readonly hour: number;
  readonly attempts: number;
  readonly succeeded: number;
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
}

export interface AttemptStats {
  readonly total: Omit<AttemptHour, "hour">;
  /** Hours without an attempt are left out. */
  readonly hours: readonly AttemptHour[];
}

/** Both hours included. */
export async function readAttemptStats(
  redis: Redis,
  partition: number,
  endpointId: string,
  fromHour: number,
  toHour: number,
): Promise<AttemptStats> {
  const hours = Array.from({ length: toHour - fromHour + 1 }, (_, n) => fromHour + n);
  const rows = await Promise.all(
    hours.map((hour) => redis.hGetAll(webhookKeys(partition).attempts(endpointId, hour))),
  );
  const counts = rows.map((row) =>
    Object.fromEntries(Object.entries(row).map(([field, count]) => [field, Number(count)])),
  );
  const sums: Record<string, number> = {};
  for (const hour of counts) {
    for (const [field, count] of Object.entries(hour)) sums[field] = (sums[field] ?? 0) + count;
  }
  return {
    total: summaryOf(sums),
    hours: counts.flatMap((own, at) => {
      const summary = summaryOf(own);
      return summary.attempts === 0 ? [] : [{ hour: hours[at] ?? 0, ...summary }];
    }),
  };
}

function summaryOf(counts: Readonly<Record<string, number>>): Omit<AttemptHour, "hour"> {
  const succeeded = counts["success"] ?? 0;
  return {
    attempts: succeeded + (counts["failure"] ?? 0),
    succeeded,
    p50Ms: quantileOf(counts, 0.5),
    p95Ms: quantileOf(counts, 0.95),
  };
}

export interface QueueDepths {
  /** First attempts that wait. */
  readonly queued: number;
  /** Retries that wait. */
  readonly waiting: number;
  readonly inFlight: number;
}

/** What an endpoint's queues hold now. */
export async function readQueueDepths(
  redis: Redis,
  partition: number,
  endpointId: string,
): Promise<QueueDepths> {
  const keys = webhookKeys(partition);
  const [queued, waiting, inFlight] = await Promise.all([
    redis.lLen(keys.queue(endpointId)),
    redis.zCard(keys.retries(endpointId)),
    redis.hmGet(keys.inFlight, [endpointId, `w ${endpointId}`]),
  ]);
  return { queued, waiting, inFlight: inFlight.reduce((sum, one) => sum + Number(one ?? 0), 0) };
}
