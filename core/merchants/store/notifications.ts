/** Notifications sent about a shipment (document 1, "Shipment detail"): messages to its recipient, and webhooks. */

import type { Configuration } from "#core/configuration/store/configuration.ts";
import type { SentNotification } from "#core/merchants/rules/notification.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { shipmentPartition } from "#core/platform/redis/keys.ts";
import { urlWithoutSecrets } from "#core/webhooks/rules/webhook-url.ts";
import {
  type Delivery,
  deliveryIdOf,
  readDeliveries,
} from "#core/webhooks/store/deliveries/deliveries.ts";
import { targetOf, targetsOf } from "#core/webhooks/store/sent-target.ts";
import type { ShipmentMoment } from "#core/webhooks/store/shipment-moment.ts";

/** Changes whose webhooks are listed: the latest ones. */
const CHANGES_TOLD = 50;

/**
 * Most recent first. Deliveries are those of the decisions read at that point in time; their outcomes may be slightly
 * newer.
 */
export async function readNotifications(
  redis: Redis,
  moment: ShipmentMoment,
  configuration: Configuration,
  nowMs: number,
): Promise<SentNotification[]> {
  const webhooks = await readWebhooks(redis, moment, configuration, nowMs);
  const all = [...moment.messages(), ...webhooks];
  return all.sort((one, other) => other.sentAtMs - one.sentAtMs);
}

/** Deliveries that have ended, of endpoints and webhooks v1 that exist. */
async function readWebhooks(
  redis: Redis,
  moment: ShipmentMoment,
  configuration: Configuration,
  nowMs: number,
): Promise<SentNotification[]> {
  const partition = shipmentPartition(moment.shipment.record.id);
  const decisions = moment.decisions().slice(-CHANGES_TOLD);
  const sent = decisions.flatMap(({ eventId, verdicts }) =>
    verdicts.flatMap(([endpointId, verdict]) =>
      verdict === "send" && targetsOf(endpointId, configuration).length > 0
        ? [deliveryIdOf(partition, endpointId, eventId)]
        : [],
    ),
  );
  if (sent.length === 0) return [];
  const deliveries = await readDeliveries(redis, sent, nowMs);
  return deliveries.flatMap((one) => webhookOf(one, configuration));
}

function webhookOf(
  { endpointId, state, attempts, fact, reason }: Delivery,
  configuration: Configuration,
): SentNotification[] {
  const last = attempts.at(-1);
  if (!last || (state !== "delivered" && state !== "failed")) return [];
  const sentTo = last.request && targetOf(endpointId, last.request, configuration);
  const target = sentTo ?? targetsOf(endpointId, configuration)[0];
  if (!target) return [];
  const isOk = state === "delivered";
  return [
    {
      type: "webhook",
      result: isOk ? "OK" : "KO",
      sentAtMs: last.atMs,
      recipient: urlWithoutSecrets(target.url),
      shipmentStatus: fact.status ?? "",
      error: isOk ? null : (reason ?? last.error),
    },
  ];
}
