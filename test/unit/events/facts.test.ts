/** What is kept of a courier event: the fact, its order among others, and its rows for the benchmarks. */
import { describe, expect, test } from "bun:test";
import { eventRow, isOutOfOrder } from "#core/benchmarks/rules/event-row.ts";
import { type LaneFacts, laneRow, transitDays, weightBand } from "#core/benchmarks/rules/lane.ts";
import type { CourierEvent } from "#core/events/rules/event.ts";
import {
  compareFacts,
  type Fact,
  minimalEvent,
  orderOf,
  withoutPersonalData,
} from "#core/events/rules/fact.ts";
import { repeatedHour } from "#core/platform/time/rome-time.ts";
import { fold, initialState } from "#core/shipments/rules/fold.ts";

const AT_MS = Date.UTC(2026, 10, 20, 10);
const HOUR_MS = 3_600_000;

const BARE = {
  eventId: "e-1",
  occurredAt: "2026-11-20T10:00:00Z",
  status: { code: "DLV", description: "Consegnato" },
} as const;

function factOf(members: Partial<Fact> = {}, event: Partial<CourierEvent> = {}): Fact {
  const arrival = { key: "k1", occurredAtMs: AT_MS, receivedAtMs: AT_MS, messageIndex: 0 };
  const mapping = { status: "DELIVERED", detail: 0, terminal: true } as const;
  return { ...arrival, mapping, event: { ...BARE, trackingNumber: "T", ...event }, ...members };
}

describe("what is kept of a parked event", () => {
  test("is its references, status, time and place, and the number that it announces", () => {
    const references = { trackingNumber: "T", externalId: "O", senderAccount: "A" };
    const location = { name: "Milano", postalCode: "20100" };
    const further = { pickupPoint: { name: "Bar" }, delivery: { signedBy: "Rossi" } };
    const trackingNumberChange = { newTrackingNumber: "N" };
    const event = { ...BARE, ...references, location, ...further, trackingNumberChange };
    expect(minimalEvent(event as CourierEvent)).toStrictEqual({
      ...BARE,
      ...references,
      trackingNumberChange,
      location: { name: "Milano" },
    });
  });

  test("has no member for what the event does not say", () => {
    const bare = { ...BARE, location: { postalCode: "20100" } };
    expect(minimalEvent(bare as CourierEvent)).toStrictEqual(BARE as CourierEvent);
    expect(minimalEvent(BARE as CourierEvent)).toStrictEqual(BARE as CourierEvent);
  });
});

test("shipments of several companies get an event without persons, and with its estimate", () => {
  const proof = { deliveredTo: "Rossi", signedBy: "Rossi", podUrl: "https://pod.test/1" };
  const estimate = { estimatedDeliveryDate: "2026-11-21", attemptNumber: 2 };
  const personal = { pickupPoint: { name: "Bar" }, recipientActionUrl: "https://act.test/1" };
  const event = { ...BARE, ...personal, delivery: { ...proof, ...estimate } } as CourierEvent;
  expect(withoutPersonalData(event)).toStrictEqual({ ...BARE, delivery: estimate });
  expect(withoutPersonalData({ ...BARE, ...personal } as CourierEvent)).toStrictEqual(
    BARE as CourierEvent,
  );
});

test("facts alike in all else are in the order of their keys, and a fact is equal to itself alone", () => {
  const [a, b] = [orderOf(factOf({ key: "a" })), orderOf(factOf({ key: "b" }))];
  expect([compareFacts(a, b), compareFacts(b, a), compareFacts(a, a)]).toEqual([-1, 1, 0]);
});

test("a fact whose code is not mapped ends nothing", () => {
  expect(orderOf(factOf({ mapping: null })).terminal).toBe(false);
  expect(orderOf(factOf()).terminal).toBe(true);
});

const LANE: LaneFacts = {
  courier: "GLS_ITA",
  shipDate: "2026-11-18",
  destCap: "00118",
  originCap: "20121",
  weightKg: 2.5,
};

describe("the row of an event", () => {
  test("has the courier's codes, the lane and what they are mapped to", () => {
    const fact = factOf({ messageId: "m-1" }, { reason: { code: "R7" }, isReturn: true } as object);
    expect(eventRow(LANE, fact, [], 3)).toStrictEqual({
      key: "k1",
      code: "DLV",
      reasonCode: "R7",
      messageId: "m-1",
      version: 3,
      occurredAtMs: AT_MS,
      receivedAtMs: AT_MS,
      messageIndex: 0,
      status: "DELIVERED",
      detail: 0,
      terminal: true,
      outOfOrder: false,
      isReturn: true,
      ...LANE,
    });
  });

  test("has the day that the event estimates, and of a window its end", () => {
    const estimated = (delivery: object) =>
      eventRow(LANE, factOf({}, { delivery } as object), [], 1).estimatedOn;
    const estimatedDeliveryWindow = {
      from: "2026-11-20T22:00:00+00:00",
      to: "2026-11-20T23:30:00+00:00",
    };
    expect(estimated({ estimatedDeliveryWindow })).toBe("2026-11-21");
    const { from } = estimatedDeliveryWindow;
    expect(estimated({ estimatedDeliveryWindow: { from } })).toBe("2026-11-20");
    const estimatedDeliveryDate = "2026-11-19";
    expect(estimated({ estimatedDeliveryDate, estimatedDeliveryWindow })).toBe("2026-11-19");
    expect(estimated({ attemptNumber: 1 })).toBeUndefined();
  });

  test("says of an unmapped code that nothing is known of it", () => {
    const row = eventRow(LANE, factOf({ mapping: null }), [], 1);
    expect(row).toMatchObject({ status: null, detail: 0, terminal: false, reasonCode: null });
    expect(row).toMatchObject({ isReturn: false });
    expect("messageId" in row).toBe(false);
    const mapping = { status: "EXCEPTION", detail: 12, terminal: false } as const;
    expect(eventRow(LANE, factOf({ mapping }), [], 1).detail).toBe(12);
  });

  test("is out of order where any fact that came before it happened after it", () => {
    const arrival = (occurredAtMs: number, receivedAtMs: number, messageIndex: number) => ({
      occurredAtMs,
      receivedAtMs,
      messageIndex,
    });
    const own = arrival(10, 100, 1);
    const isLate = (...known: ReturnType<typeof arrival>[]) => isOutOfOrder(own, known);
    expect(isLate(arrival(11, 99, 1))).toBe(true);
    expect(isLate(arrival(11, 100, 0))).toBe(true);
    expect(isLate(arrival(5, 90, 0), arrival(11, 99, 1))).toBe(true);
    expect([isLate(), isLate(arrival(10, 99, 0)), isLate(arrival(11, 100, 1))]).toEqual([
      ...[false, false, false],
    ]);
    expect([isLate(arrival(11, 101, 0)), isLate(arrival(11, 100, 2))]).toEqual([false, false]);
  });
});

describe("the row of a delivery", () => {
  const pending = initialState("PENDING");
  const after = (...facts: Fact[]) =>
    facts.reduce((state, fact) => fold(state, fact)?.state ?? state, pending);
  const mapped = (status: "DEPARTED" | "FAILED_ATTEMPT" | "EXCEPTION", key: string, days: number) =>
    factOf({
      key,
      occurredAtMs: AT_MS - days * 24 * HOUR_MS,
      mapping: { status, detail: 0, terminal: false },
    });

  test("is none before the delivery, and none where the destination is in no lane", () => {
    const delivered = after(factOf());
    expect(laneRow(LANE, pending, pending, 1)).toBeNull();
    expect(laneRow(LANE, pending, after(mapped("EXCEPTION", "a", 0)), 1)).toBeNull();
    expect(laneRow({ ...LANE, destCap: null }, pending, delivered, 1)).toBeNull();
  });

  test("counts its days, its attempts with the delivery itself, and its exceptions", () => {
    const facts = [mapped("DEPARTED", "a", 1), mapped("FAILED_ATTEMPT", "b", 0.5)];
    const delivered = after(...facts, mapped("EXCEPTION", "c", 0.2), factOf());
    expect(laneRow(LANE, pending, delivered, 7)).toStrictEqual({
      ...LANE,
      destCap: "00118",
      deliveredOn: "2026-11-20",
      leadDays: 2,
      transitDays: 1,
      attempts: 2,
      exceptions: 1,
      isReturn: false,
      version: 7,
      removed: false,
    });
    const numbered = factOf({}, { delivery: { attemptNumber: 4 } } as object);
    expect(laneRow(LANE, pending, after(numbered), 1)?.attempts).toBe(4);
    expect(laneRow(LANE, pending, after(factOf()), 1)?.attempts).toBe(1);
  });

  test("is withdrawn where a later fact says that there was none", () => {
    const delivered = after(factOf());
    const later = mapped("EXCEPTION", "z", -1);
    const { state } = fold(delivered, later) ?? { state: pending };
    expect(laneRow(LANE, delivered, state, 2)).toMatchObject({ removed: true, leadDays: 2 });
  });

  test("before the ship date has no days, and at the moment of departure none in transit", () => {
    const early = { ...LANE, shipDate: "2026-11-22" };
    expect(laneRow(early, pending, after(factOf()), 1)?.leadDays).toBe(0);
    expect(transitDays(AT_MS, AT_MS)).toBe(0);
    expect([transitDays(AT_MS + 1, AT_MS), transitDays(null, AT_MS)]).toEqual([null, null]);
  });

  test("is in the band above every bound where it weighs more", () => {
    expect([50, 50.001, 5_000].map(weightBand)).toEqual(["30-50", "50+", "50+"]);
  });
});

test("the hour that autumn repeats is found from six hours around it, at no other time of the year", () => {
  const change = Date.UTC(2026, 9, 25, 1);
  const hour = { fromMs: change, toMs: change + HOUR_MS };
  expect(repeatedHour(change)).toEqual(hour);
  expect(repeatedHour(change - 6 * HOUR_MS)).toEqual(hour);
  expect(repeatedHour(change - HOUR_MS)).toEqual(hour);
  expect(repeatedHour(change - 6 * HOUR_MS - 1)).toBeNull();
  expect(repeatedHour(change + 7 * HOUR_MS - 1)).toEqual(hour);
  expect(repeatedHour(change + 7 * HOUR_MS)).toBeNull();
  expect([repeatedHour(AT_MS), repeatedHour(Date.UTC(2026, 2, 29, 1))]).toEqual([null, null]);
});
