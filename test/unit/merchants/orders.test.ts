/** Document 1, "Order", "Order parcel" and "Address check": the bounds of what is accepted, and how an order is kept and shown. */
import { describe, expect, test } from "bun:test";
import type { TSchema } from "@sinclair/typebox";
import { AddressCheckRequest } from "#core/merchants/rules/address-check.ts";
import { centimetres, kilograms } from "#core/merchants/rules/measure.ts";
import {
  erasedOrder,
  naturalKey,
  OrderInput,
  orderRecord,
  orderView,
  parcelHash,
} from "#core/merchants/rules/order.ts";
import {
  orderOfParcels,
  ParcelsCreation,
  ParcelUpdate,
  withParcelChanged,
} from "#core/merchants/rules/order-parcel.ts";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";
import { listFaults } from "#core/platform/schema/fault.ts";

const NOW = Date.UTC(2026, 10, 20, 10);
const ORDER = { source: "shopify", reference: "1001" };

const long = (length: number) => "x".repeat(length);

function faultsOf(schema: TSchema, value: unknown): string[] {
  const { errors } = compileSchema(schema);
  return listFaults(errors(structuredClone(value))).map(({ path, code }) => `${path} ${code}`);
}

/** The path of a bounded value, the greatest one that is accepted, and the value of a size. */
type Bound = readonly [path: string, limit: number, members: (size: number) => object];

const ORDER_BOUNDS: readonly Bound[] = [
  ["source", 50, (size) => ({ source: long(size) })],
  ["reference", 50, (size) => ({ reference: long(size) })],
  ["courier", 50, (size) => ({ courier: long(size) })],
  ["orderId", 255, (size) => ({ orderId: long(size) })],
  ["status", 255, (size) => ({ status: long(size) })],
  ["notes", 2_000, (size) => ({ notes: long(size) })],
  ["monetary.paymentMethod", 255, (size) => ({ monetary: { paymentMethod: long(size) } })],
  ["planning.deliveryOptions", 255, (size) => ({ planning: { deliveryOptions: long(size) } })],
  ["parcelsCount", 1_000, (parcelsCount) => ({ parcelsCount })],
  ["parcels", 1_000, (count) => ({ parcels: Array(count).fill({}) })],
  ["parcels[0].weight", 1_000_000, (weight) => ({ parcels: [{ weight }] })],
  ["items", 500, (count) => ({ items: Array(count).fill({ sku: "s", name: "n" }) })],
];

const CREATION = { orderReference: "1001", orderOrigin: "shopify", parcels: [{ weightKg: 1 }] };
const parcel = (members: object) => ({ parcels: [{ weightKg: 1, ...members }] });
const CREATION_BOUNDS: readonly Bound[] = [
  ["orderReference", 50, (size) => ({ orderReference: long(size) })],
  ["orderOrigin", 50, (size) => ({ orderOrigin: long(size) })],
  ["parcels", 1_000, (count) => ({ parcels: Array(count).fill({ weightKg: 1 }) })],
  ["parcels[0].contentsDescription", 255, (size) => parcel({ contentsDescription: long(size) })],
  ["parcels[0].clientInternalCode", 255, (size) => parcel({ clientInternalCode: long(size) })],
  ["parcels[0].shippingNotes", 2_000, (size) => parcel({ shippingNotes: long(size) })],
];

const ADDRESS = { street: "Via Roma 1", city: "Milano" };
const ADDRESS_BOUNDS: readonly Bound[] = [
  ["street", 255, (size) => ({ street: long(size) })],
  ["city", 255, (size) => ({ city: long(size) })],
  ["state", 255, (size) => ({ state: long(size) })],
  ["postcode", 16, (size) => ({ postcode: long(size) })],
];

const ALL_BOUNDS = [
  ...ORDER_BOUNDS.map((bound) => ["an order's", OrderInput, ORDER, ...bound] as const),
  ...CREATION_BOUNDS.map((bound) => ["a creation's", ParcelsCreation, CREATION, ...bound] as const),
  ...ADDRESS_BOUNDS.map(
    (bound) => ["an address check's", AddressCheckRequest, ADDRESS, ...bound] as const,
  ),
];

for (const [whose, schema, value, path, limit, members] of ALL_BOUNDS) {
  test(`${whose} ${path} may be ${limit}, and not one more`, () => {
    expect(faultsOf(schema, { ...value, ...members(limit) })).toEqual([]);
    const [fault, ...others] = faultsOf(schema, { ...value, ...members(limit + 1) });
    expect(fault?.split(" ")[0]).toBe(path);
    expect(others).toEqual([]);
  });
}

test("weights and lengths are more than zero and at most a million", () => {
  for (const measure of [kilograms, centimetres]) {
    expect([0.001, 1_000_000].flatMap((value) => faultsOf(measure, value))).toEqual([]);
    for (const value of [0, 1_000_000.001]) {
      expect(faultsOf(measure, value)).toEqual([" OUT_OF_RANGE"]);
    }
  }
});

test("counts, amounts and numbers of an order may be zero, and no less", () => {
  for (const name of ["courierId", "senderId", "totalWeight", "parcelsCount"]) {
    expect(faultsOf(OrderInput, { ...ORDER, [name]: 0 })).toEqual([]);
    expect(faultsOf(OrderInput, { ...ORDER, [name]: -1 })).toEqual([`${name} OUT_OF_RANGE`]);
  }
  for (const name of ["value", "shippingCost", "shippingInsurance"]) {
    const monetary = (amount: number) => ({ ...ORDER, monetary: { [name]: amount } });
    expect(faultsOf(OrderInput, monetary(0))).toEqual([]);
    expect(faultsOf(OrderInput, monetary(-0.01))).toEqual([`monetary.${name} OUT_OF_RANGE`]);
  }
});

test("keys of an order, and what is asked about an address, are not empty", () => {
  const empty = { source: "", reference: "", courier: "", status: "" };
  expect(faultsOf(OrderInput, empty)).toEqual(
    Object.keys(empty).map((name) => `${name} TOO_SHORT`),
  );
  const asked = { street: "", city: "" };
  expect(faultsOf(AddressCheckRequest, asked)).toEqual(["street TOO_SHORT", "city TOO_SHORT"]);
  expect(faultsOf(ParcelsCreation, { ...CREATION, parcels: [] })).toEqual(["parcels TOO_FEW"]);
  expect(faultsOf(ParcelUpdate, {})).toEqual([]);
});

describe("an order that comes in again", () => {
  const first = orderRecord(1, { ...ORDER, parcels: [{}, {}] }, null, NOW);
  const second = orderRecord(1, { ...ORDER, parcels: [{}, {}, {}] }, first, NOW + 1_000);

  test("without a date keeps the first one, which is when it came in", () => {
    const createdAt = "2026-11-20T11:00:00.000+01:00";
    for (const record of [first, second]) {
      expect(record).toMatchObject({ createdAtMs: NOW, input: { createdAt } });
    }
    expect([first.updatedAtMs, second.updatedAtMs]).toEqual([NOW, NOW + 1_000]);
    const dated = orderRecord(1, { ...ORDER, createdAt: "2026-11-01T10:00:00Z" }, second, NOW);
    expect(dated.createdAtMs).toBe(Date.UTC(2026, 10, 1, 10));
  });

  test("keeps the date of each parcel that it had", () => {
    const third = orderRecord(1, { ...ORDER, parcels: [{}, {}, {}, {}] }, second, NOW + 2_000);
    const dates = third.parcels.map(({ createdAtMs }) => createdAtMs - NOW);
    expect(dates).toEqual([0, 0, 1_000, 2_000]);
  });
});

describe("a parcel's hash", () => {
  // Merchants keep it: no release may change it.
  const HASHES = [
    "0bb7a1f31a9f630d2321052e501f9eed76a565fe",
    "b51bb10edf428f632cd92e84ec282c0b6ea36636",
  ];

  test("follows from channel, order and number, whichever way the order came in", () => {
    expect(parcelHash(1, naturalKey("shopify", "1001"), 1)).toBe(HASHES[0] ?? "");
    const imported = orderRecord(1, { ...ORDER, parcels: [{}, {}] }, null, NOW);
    const parcels = [{ weightKg: 1 }, { weightKg: 2 }];
    const created = orderOfParcels(1, { ...CREATION, parcels }, NOW);
    for (const record of [imported, created]) {
      expect(record.parcels.map(({ hash }) => hash)).toEqual(HASHES);
      expect(record.parcels.map(({ number }) => number)).toEqual([1, 2]);
    }
    const elsewhere = parcelHash(2, naturalKey("shopify", "1001"), 1);
    const ofAnother = parcelHash(1, naturalKey("shopify1", "001"), 1);
    expect(new Set([...HASHES, elsewhere, ofAnother]).size).toBe(4);
  });

  test("tells which parcel is changed; one that the order does not have changes nothing", () => {
    const created = orderOfParcels(1, CREATION, NOW);
    const [hash = ""] = HASHES;
    const changed = withParcelChanged(created, hash, { weightKg: 5 }, NOW + 1);
    expect(changed).toMatchObject({ parcels: [{ weightKg: 5, updatedAtMs: NOW + 1 }] });
    expect(withParcelChanged(created, "none", { weightKg: 5 }, NOW + 1)).toBeNull();
  });
});

describe("an order is shown", () => {
  const shown = (members: object) =>
    orderView(16, orderRecord(1, { ...ORDER, ...members }, null, NOW), () => 9);
  const weightsOf = ({ parcels }: ReturnType<typeof shown>) => parcels.map(({ weight }) => weight);

  test("with its totals where it has no parcels: a weight without a count is one parcel", () => {
    const totals = { firstParcelLength: 3, firstParcelWidth: 2, firstParcelHeight: 1 };
    const one = shown({ totalWeight: 0.5, ...totals });
    expect(one).toMatchObject({ totalWeight: 0.5, parcelsCount: 1, ...totals });
    expect(one.parcels).toMatchObject([{ weight: 0.5, length: 3, width: 2, height: 1 }]);
    expect(weightsOf(shown({ totalWeight: 5, parcelsCount: 2 }))).toEqual([2.5, 2.5]);
    expect(shown({ totalWeight: 5, parcelsCount: 0 }).parcels).toEqual([]);
    expect(shown({})).toMatchObject({ totalWeight: 0, parcelsCount: 0, parcels: [] });
  });

  test("with the weight of its parcels to the milligram, of which one may have none", () => {
    const view = shown({ totalWeight: 9, parcels: [{ weight: 0.1 }, { weight: 0.2 }, {}] });
    expect(view).toMatchObject({ totalWeight: 0.3, parcelsCount: 3 });
    expect(weightsOf(view)).toEqual([0.1, 0.1, 0.1]);
  });

  test("with a content and an origin that all of its parcels have, and with none that differs", () => {
    const [same, other] = [{ content: "tea", originCountry: "IT" }, { content: "tea" }];
    expect(shown({ parcels: [same, same] }).parcels[1]).toMatchObject(same);
    const [first] = shown({ parcels: [same, other] }).parcels;
    expect(first).toMatchObject({ content: "tea", originCountry: null });
    expect(shown({ content: "books", parcels: [same] }).parcels[0]?.content).toBe("books");
  });

  test("with what counts where it says nothing", () => {
    expect(shown({ items: [{ sku: "s", name: "n" }] })).toMatchObject({
      courierId: 0,
      senderId: null,
      status: "new",
      isReturnable: true,
      monetary: { isCod: false, currency: "EUR", value: null },
      items: [{ quantity: 1, isReturnable: true, price: null, transparencyCodes: [] }],
    });
    expect(shown({ courier: "GLS_ITA" }).courierId).toBe(9);
    expect(shown({ courier: "GLS_ITA", courierId: 7 }).courierId).toBe(7);
  });

  test("with planned dates as days, of a date-time the day in Rome", () => {
    const planning = {
      requestedDeliveryDate: "2026-11-05",
      latestShipDate: "2026-11-03T23:30:00Z",
    };
    expect(shown({ planning }).planning).toMatchObject({
      requestedDeliveryDate: "2026-11-05",
      latestShipDate: "2026-11-04",
      latestDeliveryDate: null,
    });
  });
});

test("an erased order keeps its items without their notes, and nothing that names the recipient", () => {
  const erased = (members: Partial<OrderInput>) =>
    erasedOrder(
      orderRecord(1, { ...ORDER, consignee: { name: "M" }, notes: "M", ...members }, null, NOW),
    ).input;
  const { items, ...others } = erased({ items: [{ sku: "s", name: "n", notes: "for M" }] });
  expect(items).toEqual([{ sku: "s", name: "n" }]);
  expect(Object.keys(others)).toEqual(["source", "reference", "createdAt"]);
  expect(erased({})).not.toHaveProperty("items");
});
