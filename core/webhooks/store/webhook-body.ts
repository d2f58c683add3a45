/** The body of a webhook: the frozen fact and the shipment as it is now (document 3, "Delivery payload"). */

import type { Configuration } from "#core/configuration/store/configuration.ts";
import { shipmentSummary } from "#core/shipments/rules/shipment-view.ts";
import type { StoredShipment } from "#core/shipments/store/shipments.ts";
import { viewNames } from "#core/shipments/store/view-names.ts";
import {
  eventText,
  type FrozenFact,
  shipmentText,
  type WebhookEvent,
  webhookText,
} from "#core/webhooks/rules/webhook-payload.ts";
import { type EncodedBody, encodeBody } from "#core/webhooks/rules/webhook-request.ts";
import type { FrozenDelivery } from "#core/webhooks/store/deliveries/deliveries.ts";

export type DeliveryWords = Pick<FrozenDelivery, "eventId" | "createdAtMs" | "trigger">;

export function deliveryBody(
  { eventId, createdAtMs, trigger }: DeliveryWords,
  fact: FrozenFact,
  shipment: StoredShipment,
  configuration: Configuration,
  withConsignee: boolean,
): string {
  const event: Omit<WebhookEvent, "fact"> = {
    id: eventId,
    type: "shipment.updated",
    createdAtMs,
    trigger,
  };
  return webhookText(event, textOf(shipment, configuration, withConsignee), eventTextOf(fact));
}

interface Sendable {
  readonly words: DeliveryWords;
  readonly shipmentText: string;
  readonly body: EncodedBody;
}

const sendables = new WeakMap<FrozenFact, Sendable>();

/**
 * The same, ready to be sent. All endpoints of a channel share the event: what is leased of it together is written, encoded
 * and hashed once.
 */
export function encodedDeliveryBody(
  words: DeliveryWords,
  fact: FrozenFact,
  shipment: StoredShipment,
  configuration: Configuration,
  withConsignee: boolean,
): EncodedBody {
  const shipmentText = textOf(shipment, configuration, withConsignee);
  const kept = sendables.get(fact);
  if (kept?.shipmentText === shipmentText && isSameEvent(kept.words, words)) return kept.body;
  const body = encodeBody(deliveryBody(words, fact, shipment, configuration, withConsignee));
  sendables.set(fact, { words, shipmentText, body });
  return body;
}

function isSameEvent(one: DeliveryWords, other: DeliveryWords): boolean {
  return (
    one.eventId === other.eventId &&
    one.createdAtMs === other.createdAtMs &&
    one.trigger === other.trigger
  );
}

interface Texts {
  readonly configuration: Configuration;
  /** By whether the payload includes the recipient. */
  readonly texts: Map<boolean, string>;
}

/** Deliveries of one lease share their shipment, and what is said of it. */
const texts = new WeakMap<StoredShipment, Texts>();

function textOf(shipment: StoredShipment, configuration: Configuration, withConsignee: boolean) {
  let kept = texts.get(shipment);
  if (kept?.configuration !== configuration) {
    kept = { configuration, texts: new Map() };
    texts.set(shipment, kept);
  }
  let text = kept.texts.get(withConsignee);
  if (text === undefined) {
    const { record, state, statusUpdatedAtMs } = shipment;
    const names = viewNames(shipment, configuration);
    const summary = shipmentSummary(record, state, statusUpdatedAtMs, names);
    text = shipmentText(summary, withConsignee);
    kept.texts.set(withConsignee, text);
  }
  return text;
}

/** Deliveries of one lease share the fact of their event too. */
const eventTexts = new WeakMap<FrozenFact, string>();

function eventTextOf(fact: FrozenFact): string {
  let text = eventTexts.get(fact);
  if (text === undefined) {
    text = eventText(fact);
    eventTexts.set(fact, text);
  }
  return text;
}
