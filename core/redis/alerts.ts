/**
 * The outbox of webhook alerts (document 3, "Endpoint"): put in by the health clock exactly once each, read by the mailer,
 * taken out once the mail is on its way. It carries no address: the mailer asks the configuration for it.
 * An endpoint adds at most two entries in three days, so the outbox is bounded by their number.
 */
import type { Redis } from "./client.ts";
import { PARTITIONS, webhookKeys } from "./keys.ts";

/** `warning` after 24 hours without success, `disabled` after 3 days. */
export type AlertKind = "warning" | "disabled";

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
  const partitions = Array.from({ length: PARTITIONS }, (_, n) => n);
  const read = await Promise.all(
    partitions.map((n) => redis.xRange(webhookKeys(n).alerts, "-", "+", { COUNT: limit })),
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

/** Taken out for good. */
export async function removeAlert(redis: Redis, { partition, id }: Alert): Promise<void> {
  const { alerts, alertClaim } = webhookKeys(partition);
  await redis.multi().xDel(alerts, id).del(alertClaim(id)).exec();
}

/** @returns false when another process has it or has done it, or when its next try is not due yet */
export async function claimAlert(
  redis: Redis,
  { partition, id }: Alert,
  claimMs: number,
): Promise<boolean> {
  const { alerts, alertClaim } = webhookKeys(partition);
  const key = alertClaim(id);
  if ((await redis.set(key, "1", { NX: true, PX: claimMs })) === null) return false;
  // The claim goes with the alert: one that was mailed since it was read can be claimed, but is not there any more.
  if ((await redis.xRange(alerts, id, id))?.length) return true;
  await redis.del(key);
  return false;
}

/** Nobody takes the alert before this time has passed. */
export async function postponeAlert(
  redis: Redis,
  { partition, id }: Alert,
  waitMs: number,
): Promise<void> {
  await redis.set(webhookKeys(partition).alertClaim(id), "1", { PX: waitMs });
}
