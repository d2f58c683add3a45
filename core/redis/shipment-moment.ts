/**
 * A shipment with all that is told of it, read at one moment: what has been decided or sent about a change never stands in
 * an answer whose history lacks that change.
 */
import type { SentNotification } from "#core/domain/notification.ts";
import { binary, type Redis, run, script } from "./client.ts";
import { decisionsOf, type KeptDecision } from "./deliveries.ts";
import { companyKeys, shipmentPartition, webhookKeys } from "./keys.ts";
import readMomentSource from "./scripts/read-moment.lua" with { type: "text" };
import { type ShipmentWithHistory, shipmentWithHistory } from "./shipments.ts";

const readMomentScript = script(readMomentSource);

/** Lists are unpacked when they are asked for: a shipment of another channel is read and shown to nobody. */
export interface ShipmentMoment extends ShipmentWithHistory {
  /** Messages to its recipient that have ended, newest first. */
  readonly messages: () => SentNotification[];
  /** Webhook decisions of the last 30 days, in the order of its changes. */
  readonly decisions: () => KeptDecision[];
}

/** @returns null when there is no such shipment */
export async function readMoment(redis: Redis, id: number): Promise<ShipmentMoment | null> {
  const partition = shipmentPartition(id);
  const { shipment, notifications } = companyKeys(partition);
  const keys = [shipment(id), notifications(id), webhookKeys(partition).verdicts(id)];
  const [row, messages, decisions] = await run<[Buffer[], Buffer[], Buffer[]]>(
    redis,
    readMomentScript,
    keys,
    [],
    binary(redis),
  );
  const found = shipmentWithHistory(id, row);
  if (!found) return null;
  return {
    ...found,
    messages: () => messages.map((text): SentNotification => JSON.parse(String(text))),
    decisions: () => decisionsOf(decisions.map(String)),
  };
}
