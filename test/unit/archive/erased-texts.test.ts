/** Every text that a merchant or a courier can send, and which of them an erasure leaves (docs/operations/personal-data.md, "Erasing a recipient"). */
import { describe, expect, test } from "bun:test";
import type { TSchema } from "@sinclair/typebox";
import { CourierEvent } from "#core/events/rules/event.ts";
import { erasedOrder, OrderInput, type OrderParcel } from "#core/merchants/rules/order.ts";
import { erasedEvent, erasedRecord } from "#core/shipments/rules/erase.ts";
import { ShipmentInput } from "#core/shipments/rules/shipment.ts";

const MARK = "planted at ";

/** A value with a marker in every text; of a list one element, of a free record one member. */
function planted(schema: TSchema, path: string): unknown {
  const { properties, items, patternProperties, anyOf, type } = schema;
  if (properties) {
    const entries = Object.entries(properties as Record<string, TSchema>);
    return Object.fromEntries(
      entries.map(([name, member]) => [
        name,
        planted(member, path === "" ? name : `${path}.${name}`),
      ]),
    );
  }
  if (type === "array") return [planted(items, path)];
  if (patternProperties) return { any: `${MARK}${path}` };
  if (anyOf || type === "string") return `${MARK}${path}`;
  return 1;
}

/** Paths of the markers that are left. */
function leftIn(value: unknown): string[] {
  const found = JSON.stringify(value).matchAll(new RegExp(`${MARK}([\\w.]+)`, "g"));
  return [...new Set([...found].map(([, path = ""]) => path))].sort();
}

const ARTICLE = [
  "customsCode",
  "name",
  "originCountry",
  "parcelId",
  "sku",
  "transparencyCodes",
  "unitOfMeasurement",
];
const articles = (list: string) => ARTICLE.map((name) => `${list}.${name}`);

describe("erasing a recipient", () => {
  test("leaves of a shipment its numbers, days and articles, and no text besides", () => {
    const record = planted(ShipmentInput, "") as Parameters<typeof erasedRecord>[0];
    expect(leftIn(erasedRecord(record))).toEqual(
      [
        ...["courier", "language", "monetary.currency", "orderDate", "orderReference", "origin"],
        ...articles("orderItems"),
        ...["boxCode", "id", "originCountry", "trackingNumber"].map((name) => `parcels.${name}`),
        ...["deliveryDate", "latestDeliveryDate", "latestShipDate"].map(
          (name) => `planning.${name}`,
        ),
        ...["platformOrderId", "shipDate", "trackingNumber"],
      ].sort(),
    );
  });

  test("leaves of an order its numbers, days, services and articles, and no text besides", () => {
    const input = planted(OrderInput, "") as Parameters<typeof erasedOrder>[0]["input"];
    const mark = (name: string) => `${MARK}parcel.${name}`;
    const parcel: OrderParcel = {
      hash: mark("hash"),
      number: 1,
      createdAtMs: 0,
      updatedAtMs: 0,
      boxCode: mark("boxCode"),
      contentsDescription: mark("contentsDescription"),
      shippingNotes: mark("shippingNotes"),
      clientInternalCode: mark("clientInternalCode"),
      originCountryIso: "IT",
    };
    const { parcels: _, ...kept } = input as typeof input & { parcels: unknown };
    const record = {
      channelId: 1,
      input: kept,
      parcels: [parcel],
      createdAtMs: 0,
      updatedAtMs: 0,
      fingerprint: "",
    };
    expect(leftIn(erasedOrder(record))).toEqual(
      [
        ...["courier", "courierService", "createdAt", "orderId", "pickupDate", "pickupTime"],
        ...["reference", "source", "status", "updatedAt", "parcel.boxCode", "parcel.hash"],
        ...articles("items"),
        ...["codPaymentOption", "currency", "paymentMethod"].map((name) => `monetary.${name}`),
        ...["deliveryOptions", "latestDeliveryDate", "latestShipDate", "requestedDeliveryDate"].map(
          (name) => `planning.${name}`,
        ),
      ].sort(),
    );
  });

  test("leaves of a courier's event its codes, times, numbers and places, and the description of its status", () => {
    const event = planted(CourierEvent, "") as Parameters<typeof erasedEvent>[0];
    expect(leftIn(erasedEvent(event))).toEqual(
      [
        ...["eventId", "trackingNumber", "occurredAt", "status.code", "status.description"],
        ...["externalId", "senderAccount", "parcel.trackingNumber", "reason.code"],
        ...["countryCode", "name", "postalCode"].map((name) => `location.${name}`),
        ...[
          "estimatedDeliveryDate",
          "estimatedDeliveryWindow.from",
          "estimatedDeliveryWindow.to",
        ].map((name) => `delivery.${name}`),
        ...["trackingNumberChange.newTrackingNumber"],
      ].sort(),
    );
  });
});
