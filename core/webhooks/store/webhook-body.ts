/** The body of a webhook: the frozen fact and the shipment as it is now (document 3, "Delivery payload"). */

import type { Configuration } from "#core/configuration/store/configuration.ts";
import type { StoredShipment } from "#core/shipments/store/shipments.ts";
import { summaryOf } from "#core/shipments/store/summary.ts";
import { type FrozenFact, webhookPayload } from "#core/webhooks/rules/webhook-payload.ts";
import { type EncodedBody, encodeBody } from "#core/webhooks/rules/webhook-request.ts";
import type { FrozenDelivery } from "#core/webhooks/store/deliveries/deliveries.ts";

/** What the body of a delivery depends on beside its fact. */
export interface BodyOf {
  readonly delivery: Pick<FrozenDelivery, "eventId" | "createdAtMs" | "trigger">;
  readonly shipment: StoredShipment;
  readonly configuration: Configuration;
  readonly withConsignee: boolean;
}

export function deliveryBody(
  { delivery, shipment, configuration, withConsignee }: BodyOf,
  fact: FrozenFact,
): string {
  const { eventId: id, createdAtMs, trigger } = delivery;
  const event = { id, type: "shipment.updated" as const, createdAtMs, trigger, fact };
  return JSON.stringify(webhookPayload(event, summaryOf(shipment, configuration), withConsignee));
}

/** All endpoints of a channel share the event: what is leased of it together is written, encoded and hashed once. */
const encoded = new WeakMap<FrozenFact, { readonly of: BodyOf; readonly body: EncodedBody }>();

/** The same, ready to be sent. */
export function encodedDeliveryBody(of: BodyOf, fact: FrozenFact): EncodedBody {
  const kept = encoded.get(fact);
  if (kept && isSame(kept.of, of)) return kept.body;
  const body = encodeBody(deliveryBody(of, fact));
  encoded.set(fact, { of, body });
  return body;
}

function isSame(one: BodyOf, other: BodyOf): boolean {
  return (
    one.shipment === other.shipment &&
    one.configuration === other.configuration &&
    one.withConsignee === other.withConsignee &&
    one.delivery.eventId === other.delivery.eventId &&
    one.delivery.createdAtMs === other.delivery.createdAtMs &&
    one.delivery.trigger === other.delivery.trigger
  );
}
