/** What an endpoint has missed: deliveries that were given up and that can still be sent again. */
import { chunks } from "#core/platform/process/chunks.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { companyPartition, webhookKeys } from "#core/platform/redis/keys.ts";
import { limit } from "#core/platform/schema/limit.ts";
import {
  DELIVERY_LIFE_MS,
  deliveryIdOf,
  ITEMS_PER_CALL,
  readDecisions,
  readDeliveries,
} from "./deliveries.ts";

const MISSED_READ = limit(
  5_000,
  "missed deliveries that are read to count their shipments",
  "the answer says so",
);

export interface Missed {
  readonly deliveries: number;
  /** Of the newest `MISSED_READ` deliveries. */
  readonly shipments: number;
  /** Those among them whose newest delivery was given up: the receiver does not know how they stand. */
  readonly shipmentsBehind: number;
  /** False when there are more deliveries than are read. */
  readonly isComplete: boolean;
  /** Creation of the oldest and of the newest; null when nothing was missed. */
  readonly window: { readonly fromMs: number; readonly toMs: number } | null;
}

/** @param sinceMs deliveries created at or after; those of more than 30 days ago are gone */
export async function readMissed(
  redis: Redis,
  companyId: number,
  endpointId: string,
  sinceMs: number,
  nowMs: number,
): Promise<Missed> {
  const partition = companyPartition(companyId);
  const key = webhookKeys(partition).failed(endpointId);
  const fromMs = Math.max(sinceMs, nowMs - DELIVERY_LIFE_MS + 1);
  const [deliveries, oldest, newest] = await Promise.all([
    redis.zCount(key, fromMs, "+inf"),
    redis.zRangeWithScores(key, fromMs, "+inf", { BY: "SCORE", LIMIT: { offset: 0, count: 1 } }),
    redis.zRangeWithScores(key, "+inf", fromMs, {
      BY: "SCORE",
      REV: true,
      LIMIT: { offset: 0, count: MISSED_READ },
    }),
  ]);
  const failed = new Set(newest.map(({ value }) => String(value)));
  const shipments = new Set<number>();
  for (const part of chunks([...failed], ITEMS_PER_CALL)) {
    for (const one of await readDeliveries(redis, part, nowMs)) shipments.add(one.shipmentId);
  }
  let shipmentsBehind = 0;
  for (const part of chunks([...shipments], ITEMS_PER_CALL)) {
    const decisions = await Promise.all(part.map((id) => readDecisions(redis, id)));
    shipmentsBehind += decisions.filter((all) => {
      const sent = all.findLast(({ verdicts }) =>
        verdicts.some(([id, verdict]) => id === endpointId && verdict === "send"),
      );
      return sent && failed.has(deliveryIdOf(partition, endpointId, sent.eventId));
    }).length;
  }
  const [first, last] = [oldest[0], newest[0]];
  return {
    deliveries,
    shipments: shipments.size,
    shipmentsBehind,
    isComplete: deliveries <= MISSED_READ,
    window: first && last ? { fromMs: first.score, toMs: last.score } : null,
  };
}
