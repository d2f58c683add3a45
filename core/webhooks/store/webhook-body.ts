/** The body of a webhook: the frozen fact and the shipment as it is now (document 3, "Delivery payload"). */

import type { Configuration, Endpoint } from "#core/configuration/store/configuration.ts";
import type { StoredShipment } from "#core/shipments/store/shipments.ts";
import { summaryOf } from "#core/shipments/store/summary.ts";
import { cloudEvent, cloudEventSource } from "#core/webhooks/rules/cloud-event.ts";
import {
  type FrozenFact,
  type WebhookPayload,
  webhookPayload,
} from "#core/webhooks/rules/webhook-payload.ts";
import { type EncodedBody, encodeBody } from "#core/webhooks/rules/webhook-request.ts";
import type { FrozenDelivery } from "#core/webhooks/store/deliveries/deliveries.ts";

/** What the body of a delivery depends on beside its fact. */
export interface BodyOf {
  readonly delivery: Pick<FrozenDelivery, "eventId" | "createdAtMs" | "trigger">;
  readonly shipment: StoredShipment;
  readonly configuration: Configuration;
  readonly withConsignee: boolean;
  /** Source of a body in the format of CloudEvents; null = the payload as it is. */
  readonly source: string | null;
}

/** What the settings of an endpoint say of its bodies. */
export function bodyTerms(
  { include, bodyFormat, channelId }: Pick<Endpoint, "include" | "bodyFormat" | "channelId">,
  { channels }: Configuration,
): Pick<BodyOf, "withConsignee" | "source"> {
  const code = channels.get(channelId)?.code ?? String(channelId);
  const source = bodyFormat === "cloudevents" ? cloudEventSource(code) : null;
  return { withConsignee: include.includes("consignee"), source };
}

export function bodyText(payload: WebhookPayload, source: string | null): string {
  return JSON.stringify(source === null ? payload : cloudEvent(payload, source));
}

export function deliveryBody(
  { delivery, shipment, configuration, withConsignee, source }: BodyOf,
  fact: FrozenFact,
): string {
  const { eventId: id, createdAtMs, trigger } = delivery;
  const event = { id, type: "shipment.updated" as const, createdAtMs, trigger, fact };
  const payload = webhookPayload(event, summaryOf(shipment, configuration), withConsignee);
  return bodyText(payload, source);
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
    one.source === other.source &&
    one.delivery.eventId === other.delivery.eventId &&
    one.delivery.createdAtMs === other.delivery.createdAtMs &&
    one.delivery.trigger === other.delivery.trigger
  );
}
