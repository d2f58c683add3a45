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

export async function removeAlert(redis: Redis, { partition, id }: Alert): Promise<void> {
  await redis.xDel(webhookKeys(partition).alerts, id);
}
