/** The payload of a webhook as a schema (document 3, "Delivery payload"). New members may appear: none are forbidden. */
import { type Static, Type } from "@sinclair/typebox";
import { nullableText as text } from "#core/platform/schema/nullable.ts";
import { ConsigneeView, ShipmentSummary } from "#core/shipments/rules/shipment-view.ts";
import { StatusSchema } from "#core/statuses/rules/status.ts";
import { TriggerSchema } from "./trigger.ts";

const LOCAL_DATE_TIME = "^\\d{4}-\\d{2}-\\d{2} \\d{2}:\\d{2}:\\d{2}$";

const Shipment = Type.Composite([
  Type.Omit(ShipmentSummary, ["consignee"]),
  Type.Object({ consignee: Type.Optional(ConsigneeView) }),
]);

const Event = Type.Object({
  date: Type.String({ pattern: LOCAL_DATE_TIME, description: "Europe/Rome, without offset" }),
  courierStatus: Type.String({ description: "the carrier's own text" }),
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
    apiVersion: Type.Literal("2"),
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
