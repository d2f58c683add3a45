/** What charts over time draw: instants where they happened, and nothing that was not measured. */
import { describe, expect, test } from "bun:test";
import { timeTicks, valueTicks } from "#panel/web/charts/scale.ts";
import { segmentsOf, toneOf } from "#panel/web/charts/series.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const iso = (at: readonly number[]) => at.map((one) => new Date(one).toISOString());

describe("a line", () => {
  const month = (at: number, value: number | null, isPartial = false) => ({
    at: at * 30 * DAY_MS,
    value,
    isPartial,
  });

  test("joins neighbours, and stops at a value that is withheld and at a month that is missing", () => {
    const points = [
      month(0, 2),
      month(1, 3),
      month(2, null),
      month(3, 3),
      month(4, 2),
      month(7, 4),
    ];
    const joined = segmentsOf(points, 32 * DAY_MS).map(({ from, to }) => [from.value, to.value]);
    expect(joined).toEqual([
      [2, 3],
      [3, 2],
    ]);
  });

  test("is marked on both sides of an incomplete month", () => {
    const points = [month(0, 9, true), month(1, 3), month(2, 3), month(3, 1, true)];
    expect(segmentsOf(points, 32 * DAY_MS).map(({ isPartial }) => isPartial)).toEqual([
      true,
      false,
      true,
    ]);
  });

  test("keeps its colour while others come and go", () => {
    expect(toneOf("BRT", ["GLS", "BRT"])).toBe(toneOf("BRT", ["BRT", "GLS"]));
  });
});

describe("an axis", () => {
  test("begins at 0 and ends at a round value that nothing exceeds", () => {
    expect(valueTicks(7.3, 4)).toEqual([0, 2, 4, 6, 8]);
    expect(valueTicks(0.3, 4)).toEqual([0, 0.1, 0.2, 0.3]);
    expect(valueTicks(4_000_000, 4)).toEqual([0, 1e6, 2e6, 3e6, 4e6]);
    expect(valueTicks(0, 4)).toEqual([0, 1]);
  });

  test("names full hours and months of Rome, through a change of the clock too", () => {
    const night = Date.parse("2026-10-24T20:00:00Z");
    // The day that begins at 22:00Z has 25 hours.
    const hours = timeTicks(night, night + 30 * HOUR_MS, 6);
    expect(hours.unit).toBe("hour");
    expect(iso(hours.at)).toEqual([
      "2026-10-24T22:00:00.000Z",
      "2026-10-25T05:00:00.000Z",
      "2026-10-25T11:00:00.000Z",
      "2026-10-25T17:00:00.000Z",
      "2026-10-25T23:00:00.000Z",
    ]);
    const year = timeTicks(
      Date.parse("2025-11-28T00:00:00Z"),
      Date.parse("2026-11-28T00:00:00Z"),
      5,
    );
    expect([year.unit, iso(year.at)]).toEqual([
      "month",
      [
        ...["2025-12-31T23:00:00.000Z", "2026-03-31T22:00:00.000Z"],
        ...["2026-06-30T22:00:00.000Z", "2026-09-30T22:00:00.000Z"],
      ],
    ]);
  });

  test.each([1, 3, 8, 24, 72, 168, 720, 2_160, 8_784, 30_000])(
    "has at most as many names as there is room for: %d hours",
    (hours) => {
      const from = Date.parse("2024-02-11T07:13:00Z");
      for (const room of [3, 6, 12]) {
        const { at } = timeTicks(from, from + hours * HOUR_MS, room);
        expect([room, at.length <= room + 1]).toEqual([room, true]);
      }
    },
  );
});
