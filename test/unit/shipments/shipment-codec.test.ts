/** The packed form of shipments gives back exactly what was put in. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Fact } from "#core/events/rules/fact.ts";
import { seenBucket } from "#core/events/store/seen.ts";
import { instantOf } from "#core/platform/time/rome-time.ts";
import { foldAll, initialState } from "#core/shipments/rules/fold.ts";
import type { ShipmentMeta, ShipmentRecord } from "#core/shipments/rules/shipment.ts";
import {
  decodeFacts,
  decodeHot,
  decodeRecord,
  encodeFacts,
  encodeHot,
  encodeRecord,
  factsText,
} from "#core/shipments/store/shipment-codec.ts";
import { STATUSES } from "#core/statuses/rules/status.ts";

const CASES = 1_000;

const text = fc.string({ unit: "grapheme", maxLength: 12 });
const some = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null });
const members = <T extends object>(all: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.record(all, { requiredKeys: [] });

const meta: fc.Arbitrary<ShipmentMeta> = fc.record(
  {
    companyId: fc.nat(),
    channelId: fc.nat(),
    courier: fc.constantFrom("GLS_ITA", "BRT"),
    trackingNumber: fc.constantFrom("T1", "T2"),
    shipDate: fc.constantFrom("2026-11-09", "2027-01-31"),
    isPlaceholder: fc.boolean(),
    orderReference: some(text),
    destCap: some(fc.constantFrom("00118", "20121")),
    originCap: some(fc.constant("80121")),
    weightKg: some(fc.constantFrom(0, 0.5, 12.345)),
    parcelNumbers: fc.array(text, { minLength: 1, maxLength: 3 }),
    plannedOn: fc.constant("2026-12-24"),
  },
  {
    requiredKeys: [
      ...(["companyId", "channelId", "courier", "trackingNumber", "shipDate"] as const),
      ...(["isPlaceholder", "orderReference", "destCap", "originCap", "weightKg"] as const),
    ],
  },
);

const OFFSETS = ["Z", "+01:00", "-03:30"];
const occurredAt = fc
  .tuple(fc.nat(20_000), fc.constantFrom("", ".5", ".123456"), fc.constantFrom(...OFFSETS))
  .map(([hours, fraction, offset]) => {
    const seconds = new Date(Date.UTC(2026, 0, 1) + hours * 3_600_000).toISOString().slice(0, 19);
    return `${seconds}${fraction}${offset}`;
  });

const event = fc.record(
  {
    eventId: fc.uuid(),
    occurredAt,
    status: fc.record({ code: text, description: text }),
    trackingNumber: fc.constantFrom("T1", "T2"),
    externalId: text,
    senderAccount: text,
    location: members({ name: text, countryCode: text, postalCode: text }),
    parcel: members({ trackingNumber: fc.oneof(text, fc.constant("__proto__")), index: fc.nat(9) }),
    reason: members({ code: text, description: text }),
    delivery: members({
      estimatedDeliveryDate: fc.constant("2026-11-10"),
      deliveredTo: fc.constantFrom("RECIPIENT", "OTHER"),
      signedBy: text,
      attemptNumber: fc.integer({ min: 1, max: 4 }),
    }),
    pickupPoint: members({ id: text, name: text, availableUntil: occurredAt }),
    trackingNumberChange: fc.record({ newTrackingNumber: fc.constantFrom("N1", "N2") }),
    recipientActionUrl: fc.webUrl(),
    isReturn: fc.boolean(),
    attributes: fc.dictionary(fc.constantFrom("a", "b"), text),
  },
  { requiredKeys: ["eventId", "occurredAt", "status"] },
) as fc.Arbitrary<Fact["event"]>;

const fact: fc.Arbitrary<Fact> = fc
  .record({
    event,
    receivedAtMs: fc.nat(),
    messageIndex: fc.nat(500),
    mapping: some(
      fc.record({
        status: fc.constantFrom(...STATUSES),
        detail: fc.nat(9),
        terminal: fc.boolean(),
      }),
    ),
    parked: fc.boolean(),
    ownKey: fc.boolean(),
    ownTime: fc.boolean(),
  })
  .map(({ parked, ownKey, ownTime, ...rest }) => ({
    ...rest,
    key: ownKey ? seenBucket("GLS_ITA", rest.event.eventId).factKey : `key ${rest.event.eventId}`,
    occurredAtMs: ownTime ? instantOf(rest.event.occurredAt) : 7,
    ...(parked && { parked: true as const }),
  }));

const facts = fc.array(fact, { maxLength: 6 });

/** As the store gives back what was put in. */
const stored = (value: string | Buffer) => Buffer.from(value);

describe("what is packed comes back", () => {
  test("facts of a history, whatever members they have", () => {
    fc.assert(
      fc.property(meta, facts, (of, all) => {
        for (const underWay of [true, false]) {
          const value = encodeFacts(factsText(of, all), underWay);
          expect(decodeFacts(of, stored(value))).toEqual(all);
        }
      }),
      { numRuns: CASES },
    );
  });

  test("meta and every state that facts can make", () => {
    fc.assert(
      fc.property(meta, facts, (of, all) => {
        const { state } = foldAll(initialState("PENDING"), all);
        expect(decodeHot(stored(encodeHot(of, state)))).toEqual({ meta: of, state });
      }),
      { numRuns: CASES },
    );
  });

  test("records, with and without the members that the meta tells too", () => {
    const record = fc.record(
      {
        companyId: fc.nat(),
        channelId: fc.nat(),
        courier: fc.constantFrom("GLS_ITA", "BRT"),
        trackingNumber: fc.constantFrom("T1", "T2"),
        shipDate: fc.constant("2026-11-09"),
        language: fc.constant("it"),
        planning: fc.constant({ deliveryDate: null }),
        createdAtMs: fc.nat(),
        orderReference: text,
        isRealTrackingNumber: fc.boolean(),
        consignee: members({ name: text, city: text }),
        orderItems: fc.array(fc.record({ sku: text, name: text })),
      },
      { requiredKeys: ["companyId", "channelId", "courier", "trackingNumber", "shipDate"] },
    ) as unknown as fc.Arbitrary<Omit<ShipmentRecord, "id">>;
    fc.assert(
      fc.property(meta, record, (of, one) => {
        expect(decodeRecord(encodeRecord(one, of), of)).toEqual(one);
      }),
      { numRuns: CASES },
    );
  });

  test("another layout is refused, not misread", () => {
    const bytes = Buffer.from([9, 1, 2, 3]);
    expect(() => decodeHot(bytes)).toThrow("another version");
  });
});
