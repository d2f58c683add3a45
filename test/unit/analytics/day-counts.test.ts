/** Exact statistics of days (document 1, "Couriers": median, mean with 1 decimal, p90). */
import { expect, test } from "bun:test";
import fc from "fast-check";
import {
  meanDays,
  medianInterval,
  percentileDays,
  sampleSize,
  sumCounts,
} from "#core/benchmarks/rules/day-counts.ts";
import { windowStart } from "#core/benchmarks/rules/lane.ts";

const samples = fc.array(fc.integer({ min: 0, max: 30 }), { minLength: 1, maxLength: 200 });

function countsOf(values: readonly number[]) {
  return sumCounts(values.map((value) => [[value, 1]] as const));
}

test("a percentile is the value at rank ceil(q * n) of the sorted sample", () => {
  fc.assert(
    fc.property(samples, fc.integer({ min: 1, max: 100 }), (values, percent) => {
      const sorted = values.toSorted((one, other) => one - other);
      const rank = Math.ceil((percent * values.length) / 100);
      expect(percentileDays(countsOf(values), percent)).toBe(sorted[rank - 1] ?? null);
    }),
  );
});

test("the median of an even sample is a value of the sample: the lower of the two in the middle", () => {
  expect(percentileDays(countsOf([1, 2, 3, 4]), 50)).toBe(2);
});

test("a mean has one decimal and a sample of nothing has none", () => {
  expect(meanDays(countsOf([1, 1, 2]))).toBe(1.3);
  expect(meanDays([])).toBeNull();
  expect(percentileDays([], 50)).toBeNull();
  expect(sampleSize([])).toBe(0);
});

test("the window begins on the same day a year ago in Rome, on 28 February after a leap day", () => {
  expect(windowStart(Date.parse("2026-11-20T22:59:59Z"))).toBe("2025-11-20");
  expect(windowStart(Date.parse("2026-11-20T23:00:00Z"))).toBe("2025-11-21");
  expect(windowStart(Date.parse("2028-02-29T12:00:00Z"))).toBe("2027-02-28");
});

test("the median's interval ends at the ranks of the binomial table, and under 6 there is none", () => {
  const ranks = (size: number) =>
    medianInterval(Array.from({ length: size }, (_, at) => [at + 1, 1]));
  expect(ranks(0)).toBeNull();
  expect(ranks(5)).toBeNull();
  expect(ranks(6)).toEqual({ low: 1, high: 6 });
  expect(ranks(10)).toEqual({ low: 2, high: 9 });
  // Of the sizes at which the normal approximation is one rank too low.
  expect(ranks(17)).toEqual({ low: 5, high: 13 });
  expect(ranks(846)).toEqual({ low: 395, high: 452 });
  expect(ranks(20)).toEqual({ low: 6, high: 15 });
  expect(ranks(100)).toEqual({ low: 40, high: 61 });
  // The exact table and its limit for large samples meet.
  expect(ranks(1_000)).toEqual({ low: 469, high: 532 });
  expect(ranks(1_001)).toEqual({ low: 469, high: 533 });
});

test("the median lies within its interval", () => {
  fc.assert(
    fc.property(samples, (values) => {
      const counts = countsOf(values);
      const interval = medianInterval(counts);
      const median = percentileDays(counts, 50) ?? 0;
      expect(interval === null ? values.length < 6 : true).toBe(true);
      if (interval === null) return;
      expect(interval.low).toBeLessThanOrEqual(median);
      expect(interval.high).toBeGreaterThanOrEqual(median);
    }),
  );
});
