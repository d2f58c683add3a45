/**
 * A shipment with everything that is shown about it, read at one point in time: an answer never contains a decision or a
 * message about a change that is missing from its history.
 */
import type { SentNotification } from "#core/domain/messages/notification.ts";
import { binary, type Redis, run, script } from "#core/redis/client/client.ts";
import { companyKeys, shipmentPartition, webhookKeys } from "#core/redis/client/keys.ts";
import { type ShipmentWithHistory, shipmentWithHistory } from "#core/redis/shipments/shipments.ts";
import { decisionsOf, type KeptDecision } from "./deliveries.ts";
import readMomentSource from "./read-moment.lua" with { type: "text" };

const readMomentScript = script(readMomentSource);

/** Lists are unpacked only when needed: shipments of other channels are read too, but not shown. */
export interface ShipmentMoment extends ShipmentWithHistory {
  /** Messages to its recipient that were sent or have failed, newest first. */
  readonly messages: () => SentNotification[];
  /** Webhook decisions of the last 30 days, in the order of the shipment's changes. */
  readonly decisions: () => KeptDecision[];
}

/** @returns null if there is no such shipment */
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
    messages: () =>
      messages.map((text): SentNotification => {
        const { messageId, event, ...sent } = JSON.parse(String(text));
        return sent;
      }),
    decisions: () => decisionsOf(decisions.map(String)),
  };
}
