/** Shipments in the interface description. */
import { Type } from "@sinclair/typebox";
import { CREATE_BODY_BYTES, IMPORT_BODY_BYTES } from "#api/body-limits.ts";
import { ImportBody } from "#api/shipments/import.ts";
import { PAGE_MAX, STATUS_LIST, TEXT_MAX } from "#api/shipments/search-query.ts";
import { DetailPart } from "#api/shipments/shipment-detail.ts";
import { StockReleaseBody } from "#core/domain/labels/stock-release.ts";
import { NotificationBody } from "#core/domain/messages/notification.ts";
import { nullableText } from "#core/domain/schema/nullable.ts";
import { ItemErrorView } from "#core/domain/shipments/import-result.ts";
import { CreateBody } from "#core/domain/shipments/shipment.ts";
import { ShipmentSummary } from "#core/domain/shipments/shipment-view.ts";
import { STATUSES } from "#core/domain/statuses/status.ts";
import { LOCAL_DATE_TIME } from "#core/domain/time/rome-time.ts";
import { id, inPath, type Operation, query } from "./operation.ts";

const item = {
  trackingNumber: "AB123456789",
  courier: "GLS_ITA",
  shipDate: "2026-11-20",
  orderReference: "1001",
  consignee: { name: "Mario Rossi", city: "Roma", postcode: "00184", country: "IT" },
  parcels: [{ weight: 1.2, boxCode: "S" }],
};

const Created = Type.Object({
  summary: Type.Object({
    totalRequested: Type.Integer(),
    totalSuccess: Type.Integer(),
    totalFailed: Type.Integer(),
  }),
  items: Type.Array(
    Type.Object({
      status: Type.Union([Type.Literal("success"), Type.Literal("error")]),
      trackingNumber: Type.String(),
      id: Type.Union([Type.Integer(), Type.Null()]),
      trackingUrl: nullableText,
      errors: Type.Optional(Type.Array(ItemErrorView)),
    }),
  ),
});
const success = {
  status: "success",
  trackingNumber: item.trackingNumber,
  id: 4096,
  trackingUrl: null,
};
const rejected = {
  status: "error",
  trackingNumber: "AB1",
  id: null,
  trackingUrl: null,
  errors: [{ code: "INVALID_COURIER", message: "The courier is not known.", field: "courier" }],
};

const ImportAccepted = Type.Object({
  jobId: Type.String(),
  status: Type.String(),
  statusUrl: Type.String({ description: "relative to /v2" }),
  totalShipments: Type.Integer(),
});

const summary = {
  id: 4096,
  channelId: 1,
  trackingNumber: item.trackingNumber,
  trackingUrl: null,
  courier: "GLS_ITA",
  courierName: "GLS Italy",
  status: "DELIVERED",
  statusDescription: "Consegnata",
  statusDetail: 0,
  statusDetailDescription: null,
  statusDate: "2026-11-22 11:05:00",
  statusUpdatedAt: "2026-11-22 11:05:02",
  statusPlace: "Roma",
  shipDate: "2026-11-20",
  orderReference: "1001",
  platformOrderId: null,
  orderDate: null,
  tag: null,
  note: null,
  origin: "shopify",
  isReturn: false,
  consignee: {
    name: "Mario Rossi",
    street: null,
    city: "Roma",
    postcode: "00184",
    state: null,
    country: "IT",
    email: null,
    phone: null,
  },
  monetary: { totalValue: null, codAmount: null, shippingCost: null, currency: "EUR" },
  customAttributes: { custom1: null, custom2: null, custom3: null },
};
const detail = {
  ...summary,
  planning: { deliveryDate: null, latestShipDate: null, latestDeliveryDate: null },
  parcels: [],
  orderItems: [],
  history: [
    {
      date: "2026-11-22 11:05:00",
      courierStatus: "Consegnata",
      place: "Roma",
      status: "Consegnata",
      statusCode: "DELIVERED",
      statusDetail: null,
    },
  ],
  notifications: [],
};

const SearchPage = Type.Object({
  items: Type.Array(ShipmentSummary),
  total: Type.Integer(),
  page: Type.Integer(),
  limit: Type.Integer(),
  pages: Type.Integer(),
});
const ShipmentDetail = Type.Object({ ...ShipmentSummary.properties, ...DetailPart.properties });

const sorts = [
  "id_desc",
  "id_asc",
  "shipDate_desc",
  "shipDate_asc",
  "updatedAt_desc",
  "updatedAt_asc",
];
const day = Type.String({ format: "calendar-date" });
const exact = Type.String({ minLength: 1, maxLength: TEXT_MAX });
/** Document 1, "Reconciliation procedure": it ends, since at most 99 shipments of a company share a stamp. */
const CATCH_UP =
  "To miss no change, ask with `updatedAfter`, `sortBy=updatedAt_asc` and `limit=100`, and repeat with `updatedAfter` set to the " +
  "`statusUpdatedAt` of the last item, always on page 1, until fewer than 100 items return. That item comes back: deduplicate by `id`. " +
  "A smaller `limit` may return the same second for ever.";
const shipmentId = [inPath("id", id, 4096)];

const StockReleaseAnswer = Type.Object({
  status: Type.Literal("sent"),
  courierOutcome: Type.Union([
    Type.Literal("ok"),
    Type.Literal("error"),
    Type.Literal("pending", { description: "a tracking event reports the outcome later" }),
  ]),
  message: nullableText,
  releaseId: Type.Integer(),
});
const NotificationAnswer = Type.Object({
  notificationId: Type.String(),
  shipmentId: Type.Integer(),
  event: Type.String(),
  status: Type.Literal("accepted"),
});

export const SHIPMENT_OPERATIONS: readonly Operation[] = [
  {
    id: "createShipments",
    method: "post",
    path: "/v2/shipments",
    tag: "Shipments",
    summary: "Create up to 100 shipments",
    description: "Each item is validated and created on its own.",
    scope: "shipments:write",
    body: { name: "ShipmentsCreation", schema: CreateBody, example: { shipments: [item] } },
    limitBytes: CREATE_BODY_BYTES,
    rules: [
      {
        path: "shipments[].shipDate",
        code: "OUT_OF_RANGE",
        rule: "from 2000-01-01 to a year from today",
      },
    ],
    answers: {
      201: {
        description: "Every item was created.",
        content: {
          name: "CreatedShipments",
          schema: Created,
          example: {
            summary: { totalRequested: 1, totalSuccess: 1, totalFailed: 0 },
            items: [success],
          },
        },
      },
      207: {
        description: "One or more items were rejected.",
        content: {
          name: "CreatedShipments",
          schema: Created,
          example: {
            summary: { totalRequested: 2, totalSuccess: 1, totalFailed: 1 },
            items: [success, rejected],
          },
        },
      },
    },
    errors: [],
  },
  {
    id: "importShipments",
    method: "post",
    path: "/v2/shipments/import",
    tag: "Shipments",
    summary: "Create up to 5,000 shipments by a background job",
    description:
      "An invalid item fails alone, with VALIDATION_ERROR. The job reports the outcome. To `webhookUrl`, whose host must be public, `{jobId, status, result}` is sent once at the end, signed like a webhook with the secrets of the channel's webhook endpoints. A request that fails is not repeated; the job's `callback` says what came of it.",
    scope: "shipments:write",
    body: { name: "ShipmentsImport", schema: ImportBody, example: { shipments: [item] } },
    limitBytes: IMPORT_BODY_BYTES,
    rules: [
      {
        path: "webhookUrl",
        code: "BAD_FORMAT",
        rule: "a host must be named, and no user or password",
      },
      {
        path: "webhookUrl",
        code: "NOT_ALLOWED",
        rule: "the host must resolve only to public addresses",
      },
    ],
    answers: {
      202: {
        description: "The job is queued.",
        content: {
          name: "AcceptedImport",
          schema: ImportAccepted,
          example: {
            jobId: "7d0f9a52-8a0f-4f0e-9a36-0d6f6f4c0b11",
            status: "processing",
            statusUrl: "/jobs/7d0f9a52-8a0f-4f0e-9a36-0d6f6f4c0b11",
            totalShipments: 1,
          },
        },
      },
    },
    errors: [],
  },
  {
    id: "searchShipments",
    method: "get",
    path: "/v2/shipments",
    tag: "Shipments",
    summary: "Search shipments",
    description: `All filters are optional and combined with AND. ${CATCH_UP}`,
    scope: "shipments:read",
    parameters: [
      query("trackingNumber", exact, "Exact.", item.trackingNumber),
      query("orderReference", exact, "Exact.", "1001"),
      query("custom1", exact, "Exact.", "a"),
      query("custom2", exact, "Exact.", "b"),
      query("custom3", exact, "Exact.", "c"),
      query("shipDateFrom", day, "Inclusive.", "2026-11-01"),
      query("shipDateTo", day, "Inclusive.", "2026-11-30"),
      query(
        "status",
        Type.String({ pattern: STATUS_LIST.source }),
        `Comma-separated: ${STATUSES.join(", ")}.`,
        "IN_TRANSIT,DELIVERED",
      ),
      query(
        "updatedAfter",
        Type.String({ pattern: LOCAL_DATE_TIME.source }),
        "`YYYY-MM-DD HH:MM:SS`, Europe/Rome: shipments whose status changed then or later, none that never changed.",
        "2026-11-20 09:00:00",
      ),
      query(
        "scope",
        Type.Union([Type.Literal("channel"), Type.Literal("company")]),
        "channel (default), or company for keys enabled for it.",
        "channel",
      ),
      query("page", Type.Integer({ minimum: 1, maximum: PAGE_MAX }), "Default 1.", 1),
      query("limit", Type.Integer({ minimum: 1, maximum: 100 }), "Default 20.", 20),
      query(
        "sortBy",
        Type.Union(sorts.map((name) => Type.Literal(name))),
        "Default id_desc; updatedAt_* by statusUpdatedAt, ties by id.",
        "updatedAt_asc",
      ),
    ],
    answers: {
      200: {
        description: "A page of summaries.",
        content: {
          name: "ShipmentPage",
          schema: SearchPage,
          example: { items: [summary], total: 1, page: 1, limit: 20, pages: 1 },
        },
      },
    },
    rules: [{ path: "updatedAfter", code: "BAD_FORMAT", rule: "a date and time that exist" }],
    errors: [422],
  },
  {
    id: "readShipment",
    method: "get",
    path: "/v2/shipments/{id}",
    tag: "Shipments",
    summary: "Read a shipment with its history",
    scope: "shipments:read",
    parameters: shipmentId,
    answers: {
      200: {
        description: "The shipment.",
        content: { name: "ShipmentDetail", schema: ShipmentDetail, example: detail },
      },
    },
    errors: [404],
  },
  {
    id: "releaseStock",
    method: "post",
    path: "/v2/shipments/{id}/stock-release",
    tag: "Shipments",
    summary: "Ask the carrier to release a shipment held in depot",
    description:
      "May be repeated after a lost answer: while the same event holds the shipment, the same body is the same release. If the carrier has accepted it, its answer is repeated for an hour without calling the carrier; if its outcome is unknown, it is sent again under the same `Idempotency-Key`.",
    scope: "shipments:write",
    parameters: shipmentId,
    rules: [
      { path: "address", code: "REQUIRED", rule: "the action redeliver_new_address needs it" },
      { path: "address", code: "NOT_ALLOWED", rule: "only that action takes it" },
      { path: "redeliveryDate", code: "NOT_ALLOWED", rule: "not with return_to_sender" },
      { path: "redeliveryDate", code: "OUT_OF_RANGE", rule: "today or later" },
    ],
    body: {
      name: "StockRelease",
      schema: StockReleaseBody,
      example: { action: "redeliver", redeliveryDate: "2026-11-24" },
    },
    answers: {
      200: {
        description: "Sent to the carrier.",
        content: {
          name: "StockReleaseAnswer",
          schema: StockReleaseAnswer,
          example: { status: "sent", courierOutcome: "ok", message: null, releaseId: 17 },
        },
      },
    },
    errors: [404, 409, 502],
  },
  {
    id: "notifyRecipient",
    method: "post",
    path: "/v2/shipments/{id}/notifications",
    tag: "Shipments",
    summary: "Send the recipient the e-mail of a merchant-defined event",
    description:
      "Uses the first template there is of (event, language), (event, English), (fallback, language) and (fallback, English). An event is accepted once per shipment in 24 hours. `variables` are used for this e-mail only; without them the shipment's custom fields are.",
    scope: "shipments:write",
    parameters: shipmentId,
    rules: [
      { path: "event", code: "NOT_ALLOWED", rule: "not reserved, and with a usable template" },
      { path: "consignee.email", code: "REQUIRED", rule: "the shipment has a recipient e-mail" },
    ],
    body: {
      name: "Notification",
      schema: NotificationBody,
      example: { event: "review-request", variables: { custom1: "10%" }, language: "it" },
    },
    answers: {
      202: {
        description: "Accepted; delivery is asynchronous.",
        content: {
          name: "NotificationAnswer",
          schema: NotificationAnswer,
          example: {
            notificationId: "3f1d7a9e-6c0b-4f57-9a39-4d2f5b6c7d8e",
            shipmentId: 4096,
            event: "review-request",
            status: "accepted",
          },
        },
      },
    },
    errors: [404, 409],
  },
];
