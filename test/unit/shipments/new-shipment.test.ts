/** Document 1, "Shipments": what a creation takes and keeps, and what is left of it once the recipient is erased. */
import { describe, expect, test } from "bun:test";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";
import { listFaults } from "#core/platform/schema/fault.ts";
import { erasedEvent, erasedRecord } from "#core/shipments/rules/erase.ts";
import { readImportItem, trackingNumberOf } from "#core/shipments/rules/import-item.ts";
import { type CreationContext, prepareShipment } from "#core/shipments/rules/new-shipment.ts";
import {
  CreateBody,
  SHIPMENTS_PER_CREATE,
  SHIPMENTS_PER_IMPORT,
  type ShipmentInput,
  shipDay,
} from "#core/shipments/rules/shipment.ts";

const NOW_MS = Date.UTC(2026, 10, 20, 10);
const shipment = (members: object = {}) =>
  ({ trackingNumber: "T", courier: "BRT", shipDate: "2026-11-20", ...members }) as ShipmentInput;
const item = (members: object) => shipment({ orderItems: [{ sku: "s", name: "n", ...members }] });

const variant = (code: string) => ({ code, transcodings: [], shippingEnabled: true });
const context: CreationContext = {
  companyId: 1,
  channelId: 2,
  platforms: new Set(),
  boxes: new Map(),
  originCap: null,
  couriers: new Map(["brt", "BRT"].map((code) => [code, { code, name: code }])),
  variants: new Map(["brt", "BRT"].map((code) => [code, variant(code)])),
};
const prepared = (members: object = {}) => {
  const preparation = prepareShipment(shipment(members), context, NOW_MS);
  if (preparation.kind === "rejected") throw new Error(JSON.stringify(preparation.errors));
  return preparation;
};
const parcel = (weight: number, trackingNumber?: string) => ({
  weight,
  length: 1,
  width: 1,
  height: 1,
  ...(trackingNumber !== undefined && { trackingNumber }),
});

describe("a new shipment", () => {
  test("has a real tracking number and may come back, unless it says otherwise", () => {
    expect(prepared().record).toMatchObject({ isRealTrackingNumber: true, isReturnable: true });
    const said = { isRealTrackingNumber: false, isReturnable: false };
    expect(prepared(said).record).toMatchObject(said);
    expect([prepared().meta.isPlaceholder, prepared(said).meta.isPlaceholder]).toEqual([
      ...[false, true],
    ]);
  });

  test("weighs what its parcels weigh together, to the gram", () => {
    const weightOf = (parcels: object[]) => prepared({ parcels }).meta.weightKg;
    expect(weightOf([parcel(12.345)])).toBe(12.345);
    expect(weightOf([parcel(0.1), parcel(0.2)])).toBe(0.3);
    expect([weightOf([]), prepared().meta.weightKg]).toEqual([null, null]);
  });

  test("is found by the numbers of its parcels other than its own", () => {
    const numbersOf = (...numbers: string[]) =>
      prepared({ parcels: numbers.map((number) => parcel(1, number)) }).meta;
    expect(numbersOf("P1").parcelNumbers).toEqual(["P1"]);
    expect(numbersOf("P1", "T", "P1", "P2").parcelNumbers).toEqual(["P1", "P2"]);
    expect(Object.keys(numbersOf("T"))).not.toContain("parcelNumbers");
  });

  test("ships with the courier whose code it gives letter by letter, if there is one", () => {
    expect(["BRT", "brt", "Brt"].map((courier) => prepared({ courier }).record.courier)).toEqual([
      ...["BRT", "brt", "brt"],
    ]);
  });
});

describe("a creation (document 1, Limits)", () => {
  const checker = compileSchema(CreateBody);
  const faultsOf = (...shipments: object[]) =>
    listFaults(checker.errors({ shipments })).map(({ path, code }) => `${path} ${code}`);
  const text = (count: number) => "x".repeat(count);

  test("has from 1 to 100 shipments, an import 5,000", () => {
    const many = (count: number) => Array.from({ length: count }, () => shipment());
    expect([faultsOf(shipment()), faultsOf(...many(100))]).toEqual([[], []]);
    expect(faultsOf()).toEqual(["shipments TOO_FEW"]);
    expect(faultsOf(...many(101))).toEqual(["shipments TOO_MANY"]);
    expect([SHIPMENTS_PER_CREATE, SHIPMENTS_PER_IMPORT]).toEqual([100, 5_000]);
  });

  test("has texts of 255 characters, and of 2,000 for notes and addresses", () => {
    expect(faultsOf(shipment({ tag: text(255), note: text(2_000) }))).toEqual([]);
    expect(faultsOf(shipment({ tag: text(256), note: text(2_001) })).toSorted()).toEqual([
      ...["shipments[0].note TOO_LONG", "shipments[0].tag TOO_LONG"],
    ]);
  });

  test("has amounts and quantities from 0, and 100 transparency codes an item", () => {
    const codes = (count: number) => Array.from({ length: count }, (_, at) => `c${at}`);
    expect(faultsOf(item({ quantity: 0, price: 0, transparencyCodes: codes(100) }))).toEqual([]);
    const path = "shipments[0].orderItems[0]";
    expect(faultsOf(item({ quantity: -1 }))).toEqual([`${path}.quantity OUT_OF_RANGE`]);
    expect(faultsOf(item({ price: -0.01 }))).toEqual([`${path}.price OUT_OF_RANGE`]);
    expect(faultsOf(item({ transparencyCodes: codes(101) }))).toEqual([
      `${path}.transparencyCodes TOO_MANY`,
    ]);
  });

  test("days are counted whole since 1970", () => {
    expect(["1970-01-01", "1970-01-11", "2026-11-20"].map(shipDay)).toEqual([0, 10, 20_777]);
  });
});

describe("an item of an import", () => {
  test("with half a surrogate pair is invalid alone, and named by what can be read", () => {
    const half = shipment({ trackingNumber: "T\ud83d" });
    expect(readImportItem(half, true, NOW_MS)).toMatchObject({
      kind: "invalid",
      errors: [{ code: "VALIDATION_ERROR", field: "trackingNumber" }],
    });
    expect(trackingNumberOf(half)).toBe("T\ufffd");
    expect(readImportItem(shipment(), true, NOW_MS)).toEqual({ kind: "valid", input: shipment() });
  });

  test("has no name where its tracking number is no text", () => {
    for (const raw of [{ trackingNumber: 5 }, {}, null, "T"]) {
      expect(trackingNumberOf(raw)).toBeNull();
    }
  });
});

describe("erasure", () => {
  test("leaves what an order item is, without what the merchant wrote about it", () => {
    const { record } = prepared({ note: "n", consignee: { name: "N" } });
    const { note, consignee, ...kept } = record;
    expect(erasedRecord({ id: 1, ...record })).toEqual({ id: 1, ...kept });
    const items = [{ sku: "s", name: "n", notes: "x", custom1: "x", custom5: "x" }];
    expect(erasedRecord({ id: 1, ...record, orderItems: items })).toEqual({
      id: 1,
      ...kept,
      orderItems: [{ sku: "s", name: "n" }],
    });
  });

  test("leaves the code of a reason, without its words", () => {
    const event = {
      eventId: "e",
      trackingNumber: "T",
      occurredAt: "2026-11-20T10:00:00Z",
      status: { code: "C", description: "d" },
    };
    const reason = { code: "R", description: "not to Rossi" };
    const attributes = { signature: "Rossi" };
    expect(erasedEvent({ ...event, attributes, reason })).toEqual({
      ...event,
      reason: { code: "R" },
    });
    expect(erasedEvent({ ...event, reason: { description: "words" } })).toEqual(event);
    expect(Object.keys(erasedEvent(event))).not.toContain("reason");
  });
});
