/** What each member of an event does to the state of its shipment; `fold.test.ts` has the order in which that happens. */
import { describe, expect, test } from "bun:test";
import type { CourierEvent } from "#core/events/rules/event.ts";
import type { Fact, Mapping } from "#core/events/rules/fact.ts";
import {
  attemptsOf,
  fold,
  foldAll,
  hasBeenIn,
  initialState,
  type ShipmentState,
} from "#core/shipments/rules/fold.ts";
import type { Status } from "#core/statuses/rules/status.ts";

const NEW = initialState("PENDING");

interface Members {
  readonly status?: Mapping["status"] | null;
  readonly detail?: number;
  readonly at?: number;
  readonly event?: object;
}

function factOf(
  key: string,
  { status = null, detail = 0, at = 1, event = {} }: Members = {},
): Fact {
  const reported = { eventId: key, occurredAt: "2026-11-20T10:00:00Z" };
  const code = { status: { code: "C", description: "D" } };
  return {
    key,
    occurredAtMs: at,
    receivedAtMs: 1,
    messageIndex: 0,
    mapping: status && { status, detail, terminal: false },
    event: { ...reported, ...code, trackingNumber: "T", ...event } as CourierEvent,
  };
}

const after = (...facts: readonly Fact[]): ShipmentState => foldAll(NEW, facts).state;

test("a new shipment has nothing but its status", () => {
  expect(NEW).toStrictEqual({
    pair: { status: "PENDING", detail: 0 },
    last: null,
    mapped: null,
    estimate: null,
    proof: null,
    pickupPoint: null,
    actionUrl: null,
    departedAtMs: null,
    isReturn: false,
    parcels: {},
    keys: [],
    pairs: [],
    entered: [],
    aliases: [],
    dropped: 0,
    attemptNumber: 0,
    failedAttempts: 0,
    exceptions: 0,
    unmapped: 0,
  });
});

test("a fact that says nothing but a code counts as unmapped, and leaves all else as it was", () => {
  const { last, keys, ...rest } = after(factOf("k"));
  const { last: _, keys: __, ...before } = NEW;
  expect(rest).toStrictEqual({ ...before, unmapped: 1 });
  expect([last?.value, keys]).toEqual([{ place: null }, ["k"]]);
});

test("failed attempts, exceptions and departures are counted by their status alone", () => {
  const state = after(
    ...[
      factOf("a", { status: "FAILED_ATTEMPT", at: 1 }),
      factOf("b", { status: "EXCEPTION", at: 2 }),
    ],
    ...[
      factOf("c", { status: "FAILED_ATTEMPT", at: 3 }),
      factOf("d", { status: "IN_TRANSIT", at: 4 }),
    ],
  );
  expect(state).toMatchObject({
    failedAttempts: 2,
    exceptions: 1,
    unmapped: 0,
    departedAtMs: null,
  });
});

test("transit runs from the earliest departure, whichever comes first", () => {
  const departed = (key: string, at: number) => ({
    ...factOf(key, { status: "DEPARTED", at }),
    receivedAtMs: 10,
  });
  for (const facts of [[5, 9] as const, [9, 5] as const]) {
    const state = facts.reduce<ShipmentState>(
      (state, at) => fold(state, departed(`k${at}`, at))?.state ?? state,
      NEW,
    );
    expect(state.departedAtMs).toBe(5);
    // What is dated ahead happened when it was received, at the latest.
    const ahead = { ...departed("ahead", 99), receivedAtMs: 3 };
    expect(fold(state, ahead)?.state.departedAtMs).toBe(3);
    expect(fold(state, factOf("z", { status: "IN_TRANSIT" }))?.state.departedAtMs).toBe(5);
  }
});

test("a shipment that comes back once is a return from then on", () => {
  const [said, unsaid] = [factOf("a", { event: { isReturn: true } }), factOf("b", { at: 2 })];
  expect([after(said).isReturn, after(said, unsaid).isReturn, after(unsaid).isReturn]).toEqual([
    ...[true, true, false],
  ]);
  expect(after(factOf("c", { event: { isReturn: false } })).isReturn).toBe(false);
});

test("the attempt's number is the highest one said, or as many as have failed", () => {
  const numbered = (key: string, attemptNumber: number, at: number) =>
    factOf(key, { at, event: { delivery: { attemptNumber } } });
  const state = after(numbered("a", 3, 1), numbered("b", 2, 2), factOf("c", { at: 3 }));
  expect([state.attemptNumber, attemptsOf(state), attemptsOf(NEW)]).toEqual([3, 3, 0]);
  expect(attemptsOf(after(factOf("a", { status: "FAILED_ATTEMPT" })))).toBe(1);
});

describe("a delivery's proof", () => {
  const proofOf = (delivery: object) => after(factOf("k", { event: { delivery } })).proof?.value;
  const none = { deliveredTo: null, signedBy: null, podUrl: null };

  test.each([
    { deliveredTo: "NEIGHBOUR" },
    { signedBy: "Rossi" },
    { podUrl: "https://pod.test/1" },
  ])("is there where any of its members is: %p", (said) =>
    expect(proofOf(said)).toStrictEqual({ ...none, ...said } as never),
  );

  test("is none of an estimate, and stays when an estimate follows it", () => {
    expect(proofOf({ estimatedDeliveryDate: "2026-11-21" })).toBeUndefined();
    const signed = factOf("a", { event: { delivery: { signedBy: "Rossi" } } });
    const estimated = factOf("b", { at: 2, event: { delivery: { attemptNumber: 2 } } });
    expect(after(signed, estimated).proof?.value.signedBy).toBe("Rossi");
    expect(after(signed, factOf("c", { at: 2 })).proof?.value.signedBy).toBe("Rossi");
  });
});

test("an estimate is a day and a window, each known or not, and the latest delivery replaces it", () => {
  const estimateOf = (...deliveries: object[]) =>
    after(...deliveries.map((delivery, at) => factOf(`k${at}`, { at, event: { delivery } })))
      .estimate?.value;
  const window = { from: "2026-11-21T09:00:00Z", to: "2026-11-21T12:00:00Z" };
  const day = { estimatedDeliveryDate: "2026-11-21" };
  expect(estimateOf({ ...day, estimatedDeliveryWindow: window })).toStrictEqual({
    date: "2026-11-21",
    ...window,
  });
  expect(estimateOf(day)).toStrictEqual({ date: "2026-11-21", from: null, to: null });
  const { from, to } = window;
  expect(estimateOf({ estimatedDeliveryWindow: { from } })).toMatchObject({ date: null, from });
  expect(estimateOf({ estimatedDeliveryWindow: { to } })).toMatchObject({ from: null, to });
  expect(estimateOf(day, {})).toStrictEqual({ date: null, from: null, to: null });
});

test("a pick-up point and the recipient's link are those of the latest event that has them", () => {
  const whole = { id: "P1", name: "Bar", address: "Via Roma 1", postalCode: "20121" };
  const point = { ...whole, countryCode: "IT", availableUntil: "2026-11-30T18:00:00Z" };
  const event = { pickupPoint: point, recipientActionUrl: "https://act.test/1" };
  const state = after(factOf("a", { event }), factOf("b", { at: 2 }));
  expect(state.pickupPoint?.value).toStrictEqual(point);
  expect(state.actionUrl?.value).toBe("https://act.test/1");
  const bare = after(factOf("c", { event: { pickupPoint: {} } })).pickupPoint?.value;
  expect(Object.values(bare ?? {})).toEqual(Array(6).fill(null));
  expect(after(factOf("d", { at: 2 })).actionUrl).toBeNull();
});

test("the place is the latest fact's own, and none where that names none", () => {
  const named = factOf("a", { event: { location: { name: "Milano" } } });
  expect(after(named).last?.value).toEqual({ place: "Milano" });
  expect(after(named, factOf("b", { at: 2 })).last?.value).toEqual({ place: null });
});

describe("pairs that a shipment has been in", () => {
  test("are entered by what became the current one, each once; the first ones never are", () => {
    const one = factOf("a", { status: "IN_TRANSIT", at: 5 });
    const late = factOf("b", { status: "EXCEPTION", at: 1 });
    const first = fold(NEW, one);
    expect(first?.change).toMatchObject({ changed: true, firstOccurrence: true });
    const second = fold(first?.state ?? NEW, late);
    expect(second?.change).toMatchObject({ changed: false, firstOccurrence: false });
    expect(second?.state).toMatchObject({
      entered: ["IN_TRANSIT:0"],
      pairs: ["EXCEPTION:0", "IN_TRANSIT:0"],
    });
    expect(hasBeenIn(NEW, { status: "PENDING", detail: 0 })).toBe(true);
    expect(hasBeenIn(NEW, { status: "PENDING", detail: 1 })).toBe(false);
  });

  test("a return to one is a change, and no first occurrence", () => {
    const there = after(
      factOf("a", { status: "IN_TRANSIT", at: 1 }),
      factOf("b", { status: "EXCEPTION", at: 2 }),
    );
    const back = fold(there, factOf("c", { status: "IN_TRANSIT", at: 3 }));
    expect(back?.change).toMatchObject({ changed: true, firstOccurrence: false });
    expect(back?.state.entered).toEqual(["EXCEPTION:0", "IN_TRANSIT:0"]);
    expect(back?.state.pairs).toEqual(["EXCEPTION:0", "IN_TRANSIT:0"]);
    const detailed = fold(there, factOf("d", { status: "EXCEPTION", detail: 3, at: 3 }));
    expect(detailed?.change).toMatchObject({ changed: true, firstOccurrence: true });
  });
});

describe("numbers and parcels", () => {
  const announcing = (count: number) =>
    Array.from({ length: count }, (_, at) =>
      factOf(`k${at}`, { at, event: { trackingNumberChange: { newTrackingNumber: `N${at}` } } }),
    );
  test("an announced number is listed once", () => {
    expect(after(...announcing(3), ...announcing(3)).aliases).toEqual(["N0", "N1", "N2"]);
  });

  test("a parcel keeps its latest status, and an unmapped fact gives it none", () => {
    const event = { parcel: { trackingNumber: "constructor" } };
    const late = factOf("a", { status: "EXCEPTION", detail: 4, at: 9, event });
    const early = factOf("b", { status: "IN_TRANSIT", at: 2, event });
    const both = fold(fold(NEW, late)?.state ?? NEW, early)?.state;
    expect(both?.parcels["CONSTRUCTOR"]?.value).toEqual({ status: "EXCEPTION", detail: 4 });
    expect(after(factOf("c", { event })).parcels).toEqual({});
    expect(
      after(factOf("d", { status: "IN_TRANSIT", event: { parcel: { index: 1 } } })).parcels,
    ).toEqual({});
  });

  test("a parcel keeps its latest status where the version before kept it under the text as it was given", () => {
    const factAt = (key: string, status: Status, at: number) =>
      factOf(key, { status, at, event: { parcel: { trackingNumber: "pk1" } } });
    const kept = after(factAt("a", "EXCEPTION", 9));
    const before = {
      ...kept,
      parcels: { pk1: kept.parcels["PK1"] as (typeof kept.parcels)[string] },
    };
    const early = fold(before, factAt("b", "IN_TRANSIT", 2))?.state;
    expect(early?.parcels["PK1"]?.value.status).toBe("EXCEPTION");
    const late = fold(before, factAt("c", "IN_TRANSIT", 10))?.state;
    expect(late?.parcels["PK1"]?.value.status).toBe("IN_TRANSIT");
  });
});

describe("facts folded in together", () => {
  const many = (count: number) =>
    Array.from({ length: count }, (_, at) => factOf(`k${9 - at}`, { status: "IN_TRANSIT", at }));

  test.each([2, 5])(
    "%d of them happen in their own order, whatever the order they come in",
    (count) => {
      const { folded } = foldAll(NEW, many(count).toReversed());
      const times = folded.map(({ change }) => change.fact.occurredAtMs);
      expect(times).toEqual(Array.from({ length: count }, (_, at) => at));
    },
  );

  test("one new one among known ones is taken up, and known afterwards", () => {
    const [fresh, ...known] = many(6);
    const { state, folded } = foldAll(after(...known), many(6));
    expect(folded.map(({ change }) => change.fact)).toEqual([fresh as Fact]);
    expect(state.keys).toEqual(
      many(6)
        .map(({ key }) => key)
        .sort(),
    );
  });

  test("none of them leaves the state as it was", () => {
    expect(foldAll(NEW, []).state).toBe(NEW);
    const known = after(...many(5));
    expect(foldAll(known, many(5)).state).toBe(known);
  });
});
