/** Parcels of test mode: a tracking number says what its courier reports, and when. */
import { describe, expect, test } from "bun:test";
import {
  eventsUntil,
  type Life,
  lifeAfterRelease,
  lifeOf,
  nextEventAtMs,
  REAL_STEP_MS,
  TEST_LIVES,
  TEST_STEP_MS,
  testCatalogue,
} from "#core/shipments/rules/test-parcel.ts";

const BEGAN_MS = Date.UTC(2026, 10, 20, 10);
const codesOf = ({ reports }: Life) => reports.map(({ word }) => word).join(" ");
const DELIVERED = "ANNOUNCED DEPARTED TRANSIT OUT DELIVERED";
const sent = (number: string, afterMs: number) => {
  const shipment = { id: 7, trackingNumber: number };
  return eventsUntil(lifeOf(number), shipment, "own", BEGAN_MS, BEGAN_MS + afterMs);
};

describe("the life of a parcel", () => {
  test("is that of its name, which the number begins with", () => {
    expect(codesOf(lifeOf("TEST_DELIVERED_1"))).toBe(DELIVERED);
    expect(codesOf(lifeOf("TEST_LOST"))).toBe("ANNOUNCED DEPARTED TRANSIT LOST");
    expect(codesOf(lifeOf("TEST_SILENT"))).toBe("");
    expect(codesOf(lifeOf("\u00a0test_lost 7"))).toBe("ANNOUNCED DEPARTED TRANSIT LOST");
    expect(codesOf(lifeOf("TEST_FAILED_THEN_DELIVERED"))).toBe(
      "ANNOUNCED DEPARTED TRANSIT OUT ABSENT OUT DELIVERED",
    );
  });

  test("is a delivery for every other number", () => {
    for (const number of ["1Z999", "TEST_UNKNOWN", "TEST_", "OWN_1LOST", "TEST_123456789LOST"]) {
      expect([number, codesOf(lifeOf(number))]).toEqual([number, DELIVERED]);
    }
  });

  test("takes a step a second, in real time one in four hours", () => {
    expect(lifeOf("TEST_LOST").stepMs).toBe(1_000);
    const real = lifeOf("TEST_REALTIME_LOST");
    expect([codesOf(real), real.stepMs]).toEqual([codesOf(lifeOf("TEST_LOST")), 14_400_000]);
    expect([TEST_STEP_MS, REAL_STEP_MS]).toEqual([1_000, 14_400_000]);
  });

  test("goes on after a stock release as the action says, in its own time", () => {
    const back = lifeAfterRelease("TEST_REALTIME_HELD", "return_to_sender");
    expect([codesOf(back), back.stepMs]).toEqual(["RETURNING RETURNED", 14_400_000]);
    expect(codesOf(lifeAfterRelease("TEST_HELD", "redeliver"))).toBe("TRANSIT OUT DELIVERED");
    expect(codesOf(lifeAfterRelease("TEST_HELD", "abandon"))).toBe("");
  });
});

describe("events", () => {
  test("are sent one a step, the first after the first step", () => {
    const counts = [0, 999, 1_000, 4_999, 5_000, 60_000].map((ms) => sent("TEST_X", ms).length);
    expect(counts).toEqual([0, 0, 1, 4, 5, 5]);
  });

  test("tell when they happened, and have ids and places of their own", () => {
    const events = sent("TEST_X", 60_000).map(({ event }) => event);
    expect(events.map(({ occurredAt }) => Date.parse(occurredAt) - BEGAN_MS)).toEqual([
      ...[1_000, 2_000, 3_000, 4_000, 5_000],
    ]);
    expect(new Set(events.map(({ eventId }) => eventId)).size).toBe(5);
    expect(events[0]).toMatchObject({
      trackingNumber: "TEST_X",
      status: { code: "ANNOUNCED", description: "Shipment data received" },
    });
  });

  test("may arrive in another order than they happened in", () => {
    const events = sent("TEST_OUT_OF_ORDER", 60_000).map(({ event }) => event);
    const inOrder = events.toSorted((a, b) => Date.parse(a.occurredAt) - Date.parse(b.occurredAt));
    expect(inOrder.map(({ status }) => status.code).join(" ")).toBe(DELIVERED);
    expect(events.map(({ status }) => status.code)).toEqual([
      ...["TRANSIT", "DELIVERED", "ANNOUNCED", "OUT", "DEPARTED"],
    ]);
  });

  test("happened when they are sent or before: none is ahead of its time", () => {
    for (const name of TEST_LIVES) {
      const late = sent(`TEST_${name}`, 60_000).filter(
        ({ index, event }) => Date.parse(event.occurredAt) > BEGAN_MS + (index + 1) * TEST_STEP_MS,
      );
      expect([name, late]).toEqual([name, []]);
    }
  });

  test("change the number of a parcel that is renumbered, once", () => {
    const events = sent("TEST_RENUMBERED", 60_000).map(({ event }) => event);
    expect(events.map((event) => event.trackingNumberChange?.newTrackingNumber)).toEqual([
      ...[undefined, undefined, "TEST_RENUMBERED-NEW", undefined, undefined],
    ]);
    expect(events.filter((event) => "trackingNumberChange" in event)).toHaveLength(1);
  });

  test("are awaited from one step to the next, until all have been sent", () => {
    const next = (number: string, ms: number) => {
      const atMs = nextEventAtMs(lifeOf(number), BEGAN_MS, BEGAN_MS + ms);
      return atMs === null ? null : atMs - BEGAN_MS;
    };
    expect([-5_000, 0, 999, 1_000, 4_999].map((ms) => next("TEST_X", ms))).toEqual([
      ...[1_000, 1_000, 1_000, 2_000, 5_000],
    ]);
    expect([next("TEST_X", 5_000), next("TEST_X", 9_000), next("TEST_SILENT", 0)]).toEqual([
      ...[null, null, null],
    ]);
  });
});

test("the catalogue of test couriers ends what is lost, delivered or returned, and holds what is held", () => {
  const catalogue = testCatalogue(4);
  expect(catalogue.filter(({ terminal }) => terminal).map(({ code }) => code)).toEqual([
    ...["LOST", "DELIVERED", "RETURNED"],
  ]);
  const detailed = catalogue.filter((entry) => "statusDetail" in entry);
  expect(detailed.map(({ code, statusDetail }) => [code, statusDetail])).toEqual([["HELD", 4]]);
});
