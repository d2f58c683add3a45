/** What a webhook carries (document 3, "Delivery payload"). Built at send time: the frozen fact, the shipment as it is now. */

import { romeDateTime, romeIso } from "#core/platform/time/rome-time.ts";
import type { SetupStatusDetail } from "#core/setup/rules/setup.ts";
import type { ShipmentSummary } from "#core/shipments/rules/shipment-view.ts";
import type { Status, StatusPair } from "#core/statuses/rules/status.ts";
import { statusDetailText, statusText } from "#core/statuses/rules/status-text.ts";
import type { Trigger } from "./trigger.ts";
import type { WebhookPayload } from "./webhook-schema.ts";

export const WEBHOOK_API_VERSION = "2";

export type WebhookType = "shipment.updated" | "webhook.test";

/** The originating fact of a delivery, frozen when the decision was made. */
export interface FrozenFact {
  readonly occurredAtMs: number;
  /** The sender's `status.description`. */
  readonly courierStatus: string;
  readonly place: string | null;
  readonly status: Status | null;
  readonly detail: number;
}

export interface WebhookEvent {
  readonly id: string;
  readonly type: WebhookType;
  readonly createdAtMs: number;
  readonly trigger: Trigger;
  readonly fact: FrozenFact;
}

/** @param includeConsignee whether the endpoint asked for the recipient's data; the member is absent otherwise */
export function webhookPayload(
  { id, type, createdAtMs, trigger, fact }: WebhookEvent,
  shipment: ShipmentSummary,
  includeConsignee: boolean,
): WebhookPayload {
  return {
    id,
    type,
    createdAt: romeIso(createdAtMs),
    apiVersion: WEBHOOK_API_VERSION,
    data: { trigger, shipment: webhookShipment(shipment, includeConsignee), event: eventOf(fact) },
  };
}

function webhookShipment({ consignee, ...rest }: ShipmentSummary, includeConsignee: boolean) {
  return includeConsignee ? { ...rest, consignee } : rest;
}

function eventOf({ occurredAtMs, courierStatus, place, status, detail }: FrozenFact) {
  return {
    date: romeDateTime(occurredAtMs),
    courierStatus,
    place,
    status: null,
    statusCode: status,
    statusDetail: null,
    statusDetailId: detail,
  };
}

/** `data.shipment` as text: made once for all deliveries of a shipment. */
export function shipmentText(shipment: ShipmentSummary, includeConsignee: boolean): string {
  return JSON.stringify(webhookShipment(shipment, includeConsignee));
}

/** `data.event` as text: made once for all deliveries of an event. */
export function eventText(fact: FrozenFact): string {
  return JSON.stringify(eventOf(fact));
}

/** The same payload as text. @param shipment its `shipmentText` @param fact its `eventText` */
export function webhookText(
  { id, type, createdAtMs, trigger }: Omit<WebhookEvent, "fact">,
  shipment: string,
  fact: string,
): string {
  const head = `{"id":${JSON.stringify(id)},"type":"${type}","createdAt":"${romeIso(createdAtMs)}"`;
  const data = `{"trigger":"${trigger}","shipment":${shipment},"event":${fact}}`;
  return `${head},"apiVersion":"${WEBHOOK_API_VERSION}","data":${data}}`;
}

/** The test event's shipment: a fixed sample, never the merchant's (document 3, "Test event"). */
export const SAMPLE_SHIPMENT: ShipmentSummary = {
  id: 1,
  channelId: 1,
  trackingNumber: "TEST0000000001",
  trackingUrl: null,
  courier: "SAMPLE",
  courierName: "Sample courier",
  status: "IN_TRANSIT",
  statusDescription: "In transit",
  statusDetail: 0,
  statusDetailDescription: null,
  statusDate: "2026-01-15 10:30:00",
  statusUpdatedAt: "2026-01-15 10:30:05",
  statusPlace: "Milano",
  shipDate: "2026-01-14",
  orderReference: "TEST-1001",
  platformOrderId: null,
  orderDate: "2026-01-13",
  tag: null,
  note: null,
  origin: "test",
  isReturn: false,
  consignee: {
    name: "Maria Bianchi",
    street: "Via Roma 1",
    city: "Milano",
    postcode: "20121",
    state: "MI",
    country: "IT",
    email: "maria.bianchi@example.com",
    phone: "+390200000000",
  },
  monetary: { totalValue: 49.9, codAmount: null, shippingCost: 5, currency: "EUR" },
  customAttributes: { custom1: null, custom2: null, custom3: null },
};

/** 2026-01-15 10:30:00 in Rome, the date of the sample. */
export const SAMPLE_FACT: FrozenFact = {
  occurredAtMs: Date.UTC(2026, 0, 15, 9, 30),
  courierStatus: "In transito",
  place: "Milano",
  status: "IN_TRANSIT",
  detail: 0,
};

/** What the sample is in, unless somebody chooses. */
export const SAMPLE_PAIR: StatusPair = { status: "IN_TRANSIT", detail: 0 };

/** The sample in a chosen status. @param registered the detail's entry in the registry; absent for 0 = none */
export function sampleIn(
  { status, detail }: StatusPair,
  registered: SetupStatusDetail | undefined,
): { readonly fact: FrozenFact; readonly shipment: ShipmentSummary } {
  return {
    fact: { ...SAMPLE_FACT, status, detail, courierStatus: statusText(status, "it") },
    shipment: {
      ...SAMPLE_SHIPMENT,
      status,
      statusDescription: statusText(status, "en"),
      statusDetail: detail,
      statusDetailDescription: statusDetailText(registered, "en"),
    },
  };
}
