/**
 * What a webhook carries (document 3, "Delivery payload"): the schema, from which the type and the published JSON Schema come,
 * and the function that fills it in at send time with the frozen fact and the shipment as it is now. The bytes that are sent and
 * signed are its JSON. New members may appear: none are forbidden.
 */
import { type Static, Type } from "@sinclair/typebox";
import { nullableText as text } from "#core/platform/schema/nullable.ts";
import { romeDateTime, romeIso } from "#core/platform/time/rome-time.ts";
import { ConsigneeView, ShipmentSummary } from "#core/shipments/rules/shipment-view.ts";
import { type Status, StatusSchema } from "#core/statuses/rules/status.ts";
import { type Trigger, TriggerSchema } from "./trigger.ts";

const WEBHOOK_API_VERSION = "2";
const LOCAL_DATE_TIME = "^\\d{4}-\\d{2}-\\d{2} \\d{2}:\\d{2}:\\d{2}$";

const Shipment = Type.Composite([
  Type.Omit(ShipmentSummary, ["consignee"]),
  Type.Object({ consignee: Type.Optional(ConsigneeView) }),
]);

const Event = Type.Object({
  date: Type.String({ pattern: LOCAL_DATE_TIME, description: "Europe/Rome, without offset" }),
  courierStatus: Type.String({ description: "the courier's own text" }),
  place: text,
  status: Type.Null({ description: "null today" }),
  statusCode: Type.Union([StatusSchema, Type.Null()], { description: "status name" }),
  statusDetail: Type.Null({ description: "null today" }),
  statusDetailId: Type.Integer({ description: "0 = none" }),
});

export const WebhookPayload = Type.Object(
  {
    id: Type.String({
      pattern: "^evt_",
      description: "the same across retries and replays: the deduplication key",
    }),
    type: Type.Union([Type.Literal("shipment.updated"), Type.Literal("webhook.test")]),
    createdAt: Type.String({ description: "ISO 8601 with offset" }),
    apiVersion: Type.Literal(WEBHOOK_API_VERSION),
    data: Type.Object({
      trigger: { ...TriggerSchema, description: "trigger of the producing endpoint" },
      shipment: {
        ...Shipment,
        description:
          "as it is when the request is sent; consignee only where the endpoint includes it",
      },
      event: { ...Event, description: "the originating fact" },
    }),
  },
  { title: "Waybill webhook" },
);
export type WebhookPayload = Static<typeof WebhookPayload>;

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
  readonly type: WebhookPayload["type"];
  readonly createdAtMs: number;
  readonly trigger: Trigger;
  readonly fact: FrozenFact;
}

/** @param includeConsignee whether the endpoint asked for the recipient's data; the member is absent otherwise */
export function webhookPayload(
  { id, type, createdAtMs, trigger, fact }: WebhookEvent,
  { consignee, ...shipment }: ShipmentSummary,
  includeConsignee: boolean,
): WebhookPayload {
  return {
    id,
    type,
    createdAt: romeIso(createdAtMs),
    apiVersion: WEBHOOK_API_VERSION,
    data: {
      trigger,
      shipment: includeConsignee ? { ...shipment, consignee } : shipment,
      event: {
        date: romeDateTime(fact.occurredAtMs),
        courierStatus: fact.courierStatus,
        place: fact.place,
        status: null,
        statusCode: fact.status,
        statusDetail: null,
        statusDetailId: fact.detail,
      },
    },
  };
}
