/** Notifications sent about a shipment (document 1, "Shipment detail"): messages to its recipient, and webhooks. */
import type { Redis } from "./client.ts";
import type { Configuration } from "./configuration.ts";
import { type Delivery, deliveryIdOf, readDecisions, readDeliveries } from "./deliveries.ts";
import { companyKeys, shipmentPartition } from "./keys.ts";

export interface SentNotification {
  readonly type: "email" | "sms" | "webhook";
  readonly result: "OK" | "KO";
  readonly sentAtMs: number;
  /** Address, phone or URL. */
  readonly recipient: string;
  /** Status of the shipment at the time. */
  readonly shipmentStatus: string;
  /** What went wrong; null when OK. */
  readonly error: string | null;
}

/** Changes whose webhooks are told, the latest ones. */
const CHANGES_TOLD = 50;

/** Most recent first. */
export async function readNotifications(
  redis: Redis,
  shipmentId: number,
  configuration: Configuration,
  nowMs: number,
): Promise<SentNotification[]> {
  const key = companyKeys(shipmentPartition(shipmentId)).notifications(shipmentId);
  const [texts, webhooks] = await Promise.all([
    redis.lRange(key, 0, -1),
    readWebhooks(redis, shipmentId, configuration, nowMs),
  ]);
  const messages = texts.map((text): SentNotification => JSON.parse(text));
  return [...messages, ...webhooks].sort((one, other) => other.sentAtMs - one.sentAtMs);
}

/** Deliveries that have ended, of endpoints that exist. */
async function readWebhooks(
  redis: Redis,
  shipmentId: number,
  { endpoints }: Configuration,
  nowMs: number,
): Promise<SentNotification[]> {
  const partition = shipmentPartition(shipmentId);
  const decisions = (await readDecisions(redis, shipmentId)).slice(-CHANGES_TOLD);
  const sent = decisions.flatMap(({ eventId, verdicts }) =>
    verdicts.flatMap(([endpointId, verdict]) =>
      verdict === "send" && endpoints.has(endpointId)
        ? [deliveryIdOf(partition, endpointId, eventId)]
        : [],
    ),
  );
  if (sent.length === 0) return [];
  const deliveries = await readDeliveries(redis, sent, nowMs);
  return deliveries.flatMap((one) => {
    const url = endpoints.get(one.endpointId)?.url;
    return url === undefined ? [] : webhookOf(one, url);
  });
}

function webhookOf({ state, attempts, fact, reason }: Delivery, url: string): SentNotification[] {
  const last = attempts.at(-1);
  if (!last || (state !== "delivered" && state !== "failed")) return [];
  const isOk = state === "delivered";
  return [
    {
      type: "webhook",
      result: isOk ? "OK" : "KO",
      sentAtMs: last.atMs,
      recipient: url,
      shipmentStatus: fact.status ?? "",
      error: isOk ? null : (reason ?? last.error),
    },
  ];
}
