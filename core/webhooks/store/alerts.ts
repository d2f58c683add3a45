/**
 * The outbox of webhook alerts (document 3, "Endpoint"): filled exactly once each by the health clock and by the first success
 * after an alert, read by the mailer, emptied once the mail is on its way. It carries no address: the mailer asks the
 * configuration for it. An endpoint adds at most two entries in 24 hours, so the outbox is bounded by their number.
 */

import type { Redis } from "#core/platform/redis/client.ts";
import { webhookKeys } from "#core/platform/redis/keys.ts";
import { type Lock, takeLock } from "#core/platform/redis/lock.ts";
import { partitionsOf } from "#core/platform/redis/partitions.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type { AlertKind } from "#core/webhooks/rules/alert-mail.ts";

/** If the process that claimed an alert is killed, another one mails it after this long. */
const CLAIM = {
  leaseMs: limit(
    60_000,
    "lease of an alert mail",
    "renewed after a third; others wait for as long if the holder is killed",
  ),
  waitLimitMs: 0,
};

export interface Alert {
  readonly partition: number;
  /** Id of the entry: the same alert read twice has the same. */
  readonly id: string;
  readonly endpointId: string;
  readonly kind: AlertKind;
  /** The first failure, UTC milliseconds. */
  readonly sinceMs: number;
  readonly atMs: number;
}

/** The oldest alerts of every partition, at most `limit` of each. */
export async function readAlerts(redis: Redis, limit: number): Promise<Alert[]> {
  const read = await Promise.all(
    partitionsOf("k").map((n) => redis.xRange(webhookKeys(n).alerts, "-", "+", { COUNT: limit })),
  );
  return read.flatMap((entries, partition) =>
    (entries ?? []).map(({ id, message }) => ({
      partition,
      id: String(id),
      endpointId: String(message["endpointId"]),
      kind: message["kind"] as unknown as AlertKind,
      sinceMs: Number(message["sinceMs"]),
      atMs: Number(message["atMs"]),
    })),
  );
}

/** Called by whoever has claimed it. */
export async function removeAlert(redis: Redis, { partition, id }: Alert): Promise<void> {
  await redis.xDel(webhookKeys(partition).alerts, id);
}

/**
 * Takes back an alert that an endpoint works again: it has been switched off since. Its next success after it is switched on
 * raises the alert again.
 */
export async function withdrawRecovery(
  redis: Redis,
  { partition, id, endpointId, sinceMs }: Alert,
): Promise<void> {
  const { alerts, alerted } = webhookKeys(partition);
  await redis.multi().hSet(alerted, endpointId, String(sinceMs)).xDel(alerts, id).exec();
}

/** @returns null if another process has claimed or mailed it, or if its next attempt is not due yet */
export async function claimAlert(redis: Redis, { partition, id }: Alert): Promise<Lock | null> {
  const { alerts, alertClaim } = webhookKeys(partition);
  const claim = await takeLock(redis, alertClaim(id), CLAIM);
  if (claim === null) return null;
  // One that was mailed since it was read can be claimed, but is not there any more.
  let isThere = false;
  try {
    isThere = Boolean((await redis.xRange(alerts, id, id))?.length);
  } finally {
    // A claim renews itself until it is released: nobody else would ever mail the alert.
    if (!isThere) await claim.release();
  }
  return isThere ? claim : null;
}
