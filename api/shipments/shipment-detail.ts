/** What the detail adds to the summary (document 1, "Shipment detail"). */

import { type Static, Type } from "@sinclair/typebox";
import { GRAINS, MIN_SAMPLE } from "#core/benchmarks/rules/lane.ts";
import { type Expected, NO_EXPECTATION } from "#core/benchmarks/store/expected-delivery.ts";
import { compareFacts, type Fact, orderOf } from "#core/events/rules/fact.ts";
import type { SentNotification } from "#core/merchants/rules/notification.ts";
import { EXTENSION } from "#core/platform/openapi/document.ts";
import { nullableNumber as number, nullableText as text } from "#core/platform/schema/nullable.ts";
import { warnings } from "#core/platform/schema/unknown-members.ts";
import { romeDateTime } from "#core/platform/time/rome-time.ts";
import type { SetupStatusDetail } from "#core/setup/rules/setup.ts";
import type { Correction, Language, OrderItem, Parcel } from "#core/shipments/rules/shipment.ts";
import { ShipmentSummary } from "#core/shipments/rules/shipment-view.ts";
import type { StoredShipment } from "#core/shipments/store/shipments.ts";
import { StatusSchema } from "#core/statuses/rules/status.ts";
import { statusDetailText, statusText } from "#core/statuses/rules/status-text.ts";

/** Of members that document 1 does not have. */
const extension = { [EXTENSION]: true };

export const ParcelView = Type.Object({
  id: text,
  trackingNumber: text,
  weight: Type.Number({ description: "kg" }),
  length: number,
  width: number,
  height: number,
  boxCode: text,
  content: text,
  originCountry: text,
});

export const OrderItemView = Type.Object({
  sku: Type.String(),
  name: Type.String(),
  quantity: Type.Integer(),
  price: number,
  total: number,
  weight: number,
  netWeight: number,
  unitOfMeasurement: text,
  url: text,
  imageUrl: text,
  isReturnable: Type.Boolean(),
  customsCode: text,
  originCountry: text,
  parcelId: text,
  notes: text,
  custom1: text,
  custom2: text,
  custom3: text,
  custom4: text,
  custom5: text,
});

export const HistoryEntry = Type.Object({
  date: Type.String(),
  courierStatus: Type.String(),
  place: text,
  status: text,
  statusCode: Type.Union([StatusSchema, Type.Null()]),
  statusDetail: text,
});

export const NotificationEntry = Type.Object({
  type: Type.String(),
  result: Type.String(),
  date: Type.String(),
  recipient: Type.String(),
  shipmentStatus: Type.String(),
  error: text,
});

const CorrectionView = Type.Object({
  date: Type.String({
    description: "When it was made, Europe/Rome.",
    examples: ["2026-11-23 09:00:00"],
  }),
  fields: Type.Array(Type.String(), {
    description: "The members that changed.",
    examples: [["consignee.street"]],
  }),
  apiKey: Type.String({ description: "Code of the API key that made it.", examples: ["main"] }),
});

const day = Type.String({ format: "calendar-date" });
export const ExpectedDeliveryView = Type.Object(
  {
    p10: day,
    p50: day,
    p90: day,
    grain: Type.Union(GRAINS.map((grain) => Type.Literal(grain))),
    sampleSize: Type.Integer({ minimum: MIN_SAMPLE }),
    asOf: Type.String(),
  },
  extension,
);

const DetailPart = Type.Object({
  planning: Type.Object({ deliveryDate: text, latestShipDate: text, latestDeliveryDate: text }),
  parcels: Type.Array(ParcelView),
  orderItems: Type.Array(OrderItemView),
  history: Type.Array(HistoryEntry),
  historyOmitted: Type.Optional(
    Type.Integer({
      ...extension,
      description:
        "only where a history is over its limit of 1,000: events between the first 100 and the latest that it does not list",
    }),
  ),
  notifications: Type.Array(NotificationEntry),
  newTrackingNumbers: Type.Array(Type.String(), {
    ...extension,
    description:
      "numbers that the courier announced for the shipment after trackingNumber, at most 100; it is found by each of them",
  }),
  corrections: Type.Optional(
    Type.Array(CorrectionView, {
      ...extension,
      description:
        "Corrections by PATCH /v2/shipments/{id}, the latest last, at most 100; absent without any.",
    }),
  ),
  expectedDelivery: Type.Union([ExpectedDeliveryView, Type.Null()], {
    ...extension,
    description: "when it will probably arrive, from the network's deliveries",
  }),
  expectedDeliveryReason: Type.Optional(
    Type.Union(
      NO_EXPECTATION.map((reason) => Type.Literal(reason)),
      {
        ...extension,
        description:
          "only where expectedDelivery is null: it has arrived or was lost (ENDED), goes back (RETURNING), is a test (TEST_MODE), has no Italian destination (NO_LANE), is like fewer than 20 deliveries (TOO_FEW_DELIVERIES), or the figures are not there yet (NOT_COUNTED_YET) or just now (UNAVAILABLE)",
      },
    ),
  ),
});
type DetailPart = Static<typeof DetailPart>;

export const ShipmentDetail = Type.Object({
  ...ShipmentSummary.properties,
  ...DetailPart.properties,
});
/** In the answer to a change. */
export const ShipmentChanged = Type.Object({ ...ShipmentDetail.properties, warnings });
export type ShipmentDetail = Static<typeof ShipmentDetail>;

/** @param facts in any order; the history is shown most recent first */
export function detailPart(
  { record, state: { dropped: omitted, aliases } }: Pick<StoredShipment, "record" | "state">,
  facts: readonly Fact[],
  notifications: readonly SentNotification[],
  statusDetails: ReadonlyMap<number, SetupStatusDetail>,
  expecting: Expected,
): DetailPart {
  const latestFirst = [...facts].sort((one, other) => compareFacts(orderOf(other), orderOf(one)));
  return {
    planning: record.planning,
    parcels: (record.parcels ?? []).map(parcelView),
    orderItems: (record.orderItems ?? []).map(orderItemView),
    history: latestFirst.map((fact) => historyEntry(fact, record.language, statusDetails)),
    ...(omitted > 0 && { historyOmitted: omitted }),
    notifications: notifications.map(({ sentAtMs, ...rest }) => ({
      ...rest,
      date: romeDateTime(sentAtMs),
    })),
    newTrackingNumbers: [...aliases],
    ...(record.corrections && { corrections: record.corrections.map(correctionView) }),
    expectedDelivery: expecting.expected,
    ...(expecting.expected === null && { expectedDeliveryReason: expecting.reason }),
  };
}

function correctionView({ atMs, fields, apiKey }: Correction): Static<typeof CorrectionView> {
  return { date: romeDateTime(atMs), fields: [...fields], apiKey };
}

function parcelView(parcel: Parcel): Static<typeof ParcelView> {
  return {
    id: parcel.id ?? null,
    trackingNumber: parcel.trackingNumber ?? null,
    weight: parcel.weight,
    length: parcel.length ?? null,
    width: parcel.width ?? null,
    height: parcel.height ?? null,
    boxCode: parcel.boxCode ?? null,
    content: parcel.content ?? null,
    originCountry: parcel.originCountry ?? null,
  };
}

function orderItemView(item: OrderItem): Static<typeof OrderItemView> {
  return {
    sku: item.sku,
    name: item.name,
    quantity: item.quantity ?? 1,
    price: item.price ?? null,
    total: item.total ?? null,
    weight: item.weight ?? null,
    netWeight: item.netWeight ?? null,
    unitOfMeasurement: item.unitOfMeasurement ?? null,
    url: item.url ?? null,
    imageUrl: item.imageUrl ?? null,
    isReturnable: item.isReturnable ?? true,
    customsCode: item.customsCode ?? null,
    originCountry: item.originCountry ?? null,
    parcelId: item.parcelId ?? null,
    notes: item.notes ?? null,
    custom1: item.custom1 ?? null,
    custom2: item.custom2 ?? null,
    custom3: item.custom3 ?? null,
    custom4: item.custom4 ?? null,
    custom5: item.custom5 ?? null,
  };
}

/** The mapped fields are null while the courier's code is not mapped. */
function historyEntry(
  { event, occurredAtMs, mapping }: Fact,
  language: Language,
  statusDetails: ReadonlyMap<number, SetupStatusDetail>,
): Static<typeof HistoryEntry> {
  return {
    date: romeDateTime(occurredAtMs),
    courierStatus: event.status.description,
    place: event.location?.name ?? null,
    status: mapping && statusText(mapping.status, language),
    statusCode: mapping?.status ?? null,
    statusDetail: mapping && statusDetailText(statusDetails.get(mapping.detail), language),
  };
}
