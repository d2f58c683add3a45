/**
 * A shipment with everything that is shown about it, read at one point in time: an answer never contains a decision or a
 * message about a change that is missing from its history.
 */

import { type Archive, readAnywhere } from "#core/archive/store/archive.ts";
import type { ArchivedShipment } from "#core/archive/store/restore-shipments.ts";
import type { SentNotification } from "#core/merchants/rules/notification.ts";
import { binary, type Redis, run, script } from "#core/platform/redis/client.ts";
import {
  companyKeys,
  indexMember,
  shipmentPartition,
  webhookKeys,
} from "#core/platform/redis/keys.ts";
import { type ShipmentWithHistory, shipmentWithHistory } from "#core/shipments/store/shipments.ts";
import { decisionsOf, type KeptDecision } from "#core/webhooks/store/deliveries/deliveries.ts";
import readMomentSource from "./read-moment.lua" with { type: "text" };

const readMomentScript = script(readMomentSource);

/** Lists are unpacked only when needed. */
export interface ShipmentMoment extends ShipmentWithHistory {
  /** Messages to its recipient that were sent or have failed, newest first. */
  readonly messages: () => SentNotification[];
  /** Webhook decisions of the last 30 days, in the order of the shipment's changes. */
  readonly decisions: () => KeptDecision[];
}

/** What is shown of an archived shipment; its webhook decisions were over before. */
export function momentOf({ whole, facts }: ArchivedShipment): ShipmentMoment {
  return {
    shipment: facts.shipment,
    facts: facts.facts,
    base: facts.base,
    messages: () => whole.messages.map(shownMessage),
    decisions: () => [],
  };
}

/** The same wherever the shipment is. @throws {Problem} 503 ARCHIVE_UNAVAILABLE */
export async function readMomentAnywhere(
  redis: Redis,
  archive: Archive,
  id: number,
  channelIds: readonly number[],
): Promise<ShipmentMoment | null> {
  const found = await readAnywhere<ShipmentMoment>(redis, archive, [id], {
    channelIds,
    thaw: momentOf,
    async readHot([one = 0]) {
      const moment = await readMoment(redis, one, channelIds);
      return new Map(moment ? [[one, moment]] : []);
    },
  });
  return found.get(id) ?? null;
}

/** @returns null if Redis does not have the shipment, or has it for another channel: both take the same time */
export async function readMoment(
  redis: Redis,
  id: number,
  channelIds: readonly number[],
): Promise<ShipmentMoment | null> {
  const partition = shipmentPartition(id);
  const { shipment, notifications, index } = companyKeys(partition);
  const keys = [
    ...[shipment(id), notifications(id), webhookKeys(partition).verdicts(id)],
    ...channelIds.map((channelId) => index(channelId, "id")),
  ];
  const [row, messages, decisions] = await run<[Buffer[], Buffer[], Buffer[]]>(
    redis,
    readMomentScript,
    keys,
    [indexMember(id)],
    binary(redis),
  );
  const found = shipmentWithHistory(id, row);
  if (!found) return null;
  return {
    ...found,
    messages: () => messages.map((text) => shownMessage(String(text))),
    decisions: () => decisionsOf(decisions.map(String)),
  };
}

function shownMessage(text: string): SentNotification {
  const { messageId, event, ...sent } = JSON.parse(text);
  return sent;
}
