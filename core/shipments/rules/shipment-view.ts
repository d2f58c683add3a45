/** The shipment summary of document 1: item of search, top of the detail, `data.shipment` of every webhook. */
import { type Static, Type } from "@sinclair/typebox";
import { nullableNumber as number, nullableText as text } from "#core/platform/schema/nullable.ts";
import { romeDateTime } from "#core/platform/time/rome-time.ts";
import type { SetupStatusDetail } from "#core/setup/rules/setup.ts";
import { StatusSchema } from "#core/statuses/rules/status.ts";
import { statusDetailText, statusText } from "#core/statuses/rules/status-text.ts";
import type { ShipmentState } from "./fold.ts";
import type { ShipmentRecord } from "./shipment.ts";

export const ConsigneeView = Type.Object({
  name: text,
  street: text,
  city: text,
  postcode: text,
  state: text,
  country: text,
  email: text,
  phone: text,
});

export const ShipmentSummary = Type.Object({
  id: Type.Integer(),
  channelId: Type.Integer(),
  trackingNumber: Type.String(),
  trackingUrl: text,
  courier: Type.String(),
  courierName: Type.String(),
  status: StatusSchema,
  statusDescription: Type.String(),
  statusDetail: Type.Integer({ description: "0 = none" }),
  statusDetailDescription: text,
  statusDate: text,
  statusUpdatedAt: text,
  statusPlace: text,
  shipDate: Type.String(),
  orderReference: text,
  platformOrderId: text,
  orderDate: text,
  tag: text,
  note: text,
  origin: text,
  isReturn: Type.Boolean(),
  consignee: ConsigneeView,
  monetary: Type.Object({
    totalValue: number,
    codAmount: number,
    shippingCost: number,
    currency: Type.String(),
  }),
  customAttributes: Type.Object({ custom1: text, custom2: text, custom3: text }),
});
export type ShipmentSummary = Static<typeof ShipmentSummary>;

/** What the view looks up beside the shipment. */
export interface ViewNames {
  readonly courierName: string;
  /** Undefined for 0 = none. */
  readonly statusDetail: SetupStatusDetail | undefined;
  /** Null = the shipment has no tracking page. */
  readonly trackingUrl: string | null;
}

/** @param statusUpdatedAtMs null until a courier event changes the status */
export function shipmentSummary(
  record: ShipmentRecord,
  state: ShipmentState,
  statusUpdatedAtMs: number | null,
  names: ViewNames,
): ShipmentSummary {
  const { status, detail } = state.pair;
  const { consignee, monetary, customAttributes, language } = record;
  return {
    id: record.id,
    channelId: record.channelId,
    trackingNumber: record.trackingNumber,
    trackingUrl: names.trackingUrl,
    courier: record.courier,
    courierName: names.courierName,
    status,
    statusDescription: statusText(status, language),
    statusDetail: detail,
    statusDetailDescription: statusDetailText(names.statusDetail, language),
    statusDate: state.last && romeDateTime(state.last.by.occurredAtMs),
    statusUpdatedAt: statusUpdatedAtMs === null ? null : romeDateTime(statusUpdatedAtMs),
    statusPlace: state.last?.value.place ?? null,
    shipDate: record.shipDate,
    orderReference: record.orderReference ?? null,
    platformOrderId: record.platformOrderId ?? null,
    orderDate: record.orderDate ?? null,
    tag: record.tag ?? null,
    note: record.note ?? null,
    origin: record.origin ?? null,
    isReturn: state.isReturn,
    consignee: {
      name: consignee?.name ?? null,
      street: consignee?.street ?? null,
      city: consignee?.city ?? null,
      postcode: consignee?.postcode ?? null,
      state: consignee?.state ?? null,
      country: consignee?.country ?? null,
      email: consignee?.email ?? null,
      phone: consignee?.phone ?? null,
    },
    monetary: {
      totalValue: monetary?.totalValue ?? null,
      codAmount: monetary?.codAmount ?? null,
      shippingCost: monetary?.shippingCost ?? null,
      currency: monetary?.currency ?? "EUR",
    },
    customAttributes: {
      custom1: customAttributes?.custom1 ?? null,
      custom2: customAttributes?.custom2 ?? null,
      custom3: customAttributes?.custom3 ?? null,
    },
  };
}
