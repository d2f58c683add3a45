/** Expected delivery from counts of deliveries (docs/analytics.md, "Expected delivery"). */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { DayCounts } from "#core/benchmarks/rules/day-counts.ts";
import {
  expectDelivery,
  leftFor,
  quantilesOf,
  type StayCell,
  shareBy,
  stageOf,
} from "#core/benchmarks/rules/expected-delivery.ts";

/** 20 deliveries that left DEPARTED: the worked example of the rules. */
const EXAMPLE: DayCounts = [
  [1, 2],
  [2, 10],
  [3, 6],
  [4, 2],
];

describe("quantiles in whole days", () => {
  test("p50 is the nearest rank, p10 and p90 hold the share closest to 80 %", () => {
    expect(quantilesOf(EXAMPLE)).toEqual({ p10: 2, p50: 2, p90: 3 });
    expect(quantilesOf([[3, 20]])).toEqual({ p10: 3, p50: 3, p90: 3 });
    const even: DayCounts = Array.from({ length: 10 }, (_, at) => [at + 1, 5] as const);
    expect(quantilesOf(even)).toEqual({ p10: 1, p50: 5, p90: 8 });
  });

  test("they are in order and days of the sample, and no rounding of either quantile holds a share closer to 80 %", () => {
    const counts = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(counts, (each) => {
        const sample: DayCounts = each.map((deliveries, days) => [days, deliveries] as const);
        const size = each.reduce((sum, one) => sum + one, 0);
        const held = (low: number, high: number) =>
          each.slice(low, high + 1).reduce((sum, one) => sum + one, 0) / size;
        const { p10, p50, p90 } = quantilesOf(sample);
        expect(p10 <= p50 && p50 <= p90 && p90 < each.length).toBe(true);
        const found = Math.abs(held(p10, p90) - 0.8);
        for (const [low, high] of [
          [p10, Math.min(p90 + 1, each.length - 1)],
          [Math.min(p10 + 1, p50), p90],
        ] as const) {
          const isCandidate = held(0, high - 1) < 0.9 && (low === 0 || held(0, low - 1) <= 0.1);
          if (isCandidate) expect(Math.abs(held(low, high) - 0.8)).toBeGreaterThan(found - 1e-9);
        }
      }),
    );
  });
});

describe("the sample", () => {
  const cell = (grain: StayCell["grain"], stays: StayCell["stays"]): StayCell => ({
    grain,
    stage: "DEPARTED",
    stays,
  });
  const asked = { stage: "DEPARTED", since: "2026-11-20", today: "2026-11-20" } as const;

  test("is the finest grain with 20 deliveries: 19 are none", () => {
    const coarse = cell("cap", [[1, 2, 20]]);
    expect(leftFor([cell("area_cap", [[1, 3, 19]]), coarse], asked)?.grain).toBe("cap");
    expect(leftFor([cell("area_cap", [[1, 3, 20]]), coarse], asked)?.grain).toBe("area_cap");
    expect(leftFor([cell("cap", [[1, 2, 19]])], asked)).toBeNull();
    expect(leftFor([coarse], { ...asked, stage: "IN_TRANSIT" })).toBeNull();
  });

  test("are those that were in the status for as long, and what is left for them: a weekend is no time", () => {
    const stays = [
      [0, 1, 30],
      [2, 4, 25],
    ] as const;
    // Friday to Monday is one working day, Friday to Saturday as well: what leaves on Friday has left by then.
    for (const today of ["2026-11-21", "2026-11-23"]) {
      const left = leftFor([cell("cap", stays)], { ...asked, today });
      expect(left?.counts).toEqual([[3, 25]]);
    }
    expect(expectDelivery([cell("cap", stays)], { ...asked, today: "2026-11-21" })).toEqual({
      p10: "2026-11-26",
      p50: "2026-11-26",
      p90: "2026-11-26",
      grain: "cap",
      sampleSize: 25,
    });
  });

  test("a deadline at a weekend is met on the Friday before, and one before today never", () => {
    const left = { grain: "cap", counts: EXAMPLE } as const;
    expect(shareBy(left, "2026-11-18", "2026-11-20")).toBe(0.6);
    expect(shareBy(left, "2026-11-18", "2026-11-22")).toBe(0.6);
    expect(shareBy(left, "2026-11-18", "2026-11-23")).toBe(0.9);
    expect(shareBy(left, "2026-11-18", "2026-11-10")).toBe(0);
  });
});

test("a stage lasts since the first of its facts in a row, and codes without a status do not end it", () => {
  const atMs = (day: number) => Date.UTC(2026, 10, day, 12);
  expect(stageOf("2026-11-16", [{ status: null, atMs: atMs(17) }])).toEqual({
    stage: "",
    since: "2026-11-16",
  });
  const facts = [
    { status: "DEPARTED", atMs: atMs(17) },
    { status: "IN_TRANSIT", atMs: atMs(18) },
    { status: null, atMs: atMs(19) },
    { status: "IN_TRANSIT", atMs: atMs(20) },
  ] as const;
  expect(stageOf("2026-11-16", facts)).toEqual({ stage: "IN_TRANSIT", since: "2026-11-18" });
});
