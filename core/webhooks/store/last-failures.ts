/** The last failed attempt of an endpoint that fails, or that failing has disabled. */
import type { AttemptRow } from "#core/benchmarks/rules/attempt-row.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { webhookKeys } from "#core/platform/redis/keys.ts";
import { readDeliveries } from "#core/webhooks/store/deliveries/deliveries.ts";
import { decodeAttempts } from "./attempt-log.ts";

export interface LastFailure {
  readonly atMs: number;
  /** One phrase of ours, as in the delivery log; never the receiver's own words. */
  readonly error: string;
}

/** Null for a healthy endpoint. */
export async function readLastFailure(
  redis: Redis,
  partition: number,
  endpointId: string,
  nowMs: number,
): Promise<LastFailure | null> {
  const line = await redis.hGet(webhookKeys(partition).lastFailures, endpointId);
  const [row] = line ? decodeAttempts({ fields: { a: line } }) : [];
  if (!row) return null;
  const [delivery] = await readDeliveries(redis, [row.deliveryId], nowMs);
  const attempt = delivery?.attempts.find((one) => isOf(one, row));
  return { atMs: row.atMs, error: attempt?.error ?? kindOf(row) };
}

type AttemptNumber = Pick<AttemptRow, "generation" | "attempt" | "atMs">;

function isOf(one: AttemptNumber, row: AttemptNumber): boolean {
  return one.generation === row.generation && one.attempt === row.attempt && one.atMs === row.atMs;
}

/** What is known without the delivery, which lives 30 days. */
function kindOf({ httpStatus, error }: AttemptRow): string {
  return httpStatus === null ? (error ?? "other") : `status ${httpStatus}`;
}
