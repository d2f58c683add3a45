/** Efficiency index (document 1, "Couriers"): index weights 40/20/40, each sub-score 0 to 100 against the lane. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { sumCounts } from "#core/benchmarks/rules/day-counts.ts";
import { efficiency, type LaneSample, networkOf } from "#core/benchmarks/rules/efficiency-index.ts";

/** Agreement with a value shown with one decimal. */
const SHOWN_DIGITS = 0.9;

function sample(leads: readonly number[], troubles = 0, transits: readonly number[] = []) {
  const counts = (values: readonly number[]) => sumCounts(values.map((value) => [[value, 1]]));
  return { leads: counts(leads), transits: counts(transits), troubles } satisfies LaneSample;
}

const repeat = (days: number, times: number) => Array.from({ length: times }, () => days);

describe("the worked example of the reference", () => {
  const a = sample([...repeat(1, 10), ...repeat(2, 10)], 1);
  const b = sample([...repeat(2, 10), ...repeat(3, 10)], 4);
  const network = networkOf([a, b]);

  test("A", () => {
    expect(efficiency(a, network)).toEqual({
      index: 61,
      speed: 68.8,
      consistency: 50,
      reliability: 58.8,
      basis: "lead",
    });
  });

  test("B", () => {
    expect(efficiency(b, network)).toEqual({
      index: 39.9,
      speed: 31.3,
      consistency: 50,
      reliability: 43.5,
      basis: "lead",
    });
  });
});

test("a courier alone on its lane is the network: 50 everywhere", () => {
  const own = sample([1, 2, 2, 3, 9, 4, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 5, 5, 5, 5], 3);
  const { index, speed, consistency, reliability } = efficiency(own, networkOf([own]));
  expect([index, speed, consistency, reliability]).toEqual([50, 50, 50, 50]);
});

test("speed uses transit days when 20 deliveries have them, else lead days", () => {
  const slowLead = sample(repeat(9, 20), 0, repeat(1, 20));
  const fewTransits = sample(repeat(2, 20), 0, repeat(3, 19));
  const network = networkOf([slowLead, fewTransits]);
  expect(efficiency(slowLead, network)).toMatchObject({ basis: "transit" });
  expect(efficiency(slowLead, network).speed).toBeGreaterThan(50);
  expect(efficiency(fewTransits, network)).toMatchObject({ basis: "lead" });
  expect(efficiency(fewTransits, network).speed).toBeGreaterThan(50);
});

test("no trouble at all in the network, or nothing but trouble, tells nobody apart", () => {
  const clean = networkOf([sample(repeat(1, 20)), sample(repeat(2, 40))]);
  expect(efficiency(sample(repeat(1, 20)), clean).reliability).toBe(50);
  const hopeless = networkOf([sample(repeat(1, 20), 20), sample(repeat(2, 40), 40)]);
  expect(efficiency(sample(repeat(1, 20), 20), hopeless).reliability).toBe(50);
});

test("a larger sample without trouble proves more than a small one", () => {
  const small = sample(repeat(1, 20));
  const large = sample(repeat(1, 2_000));
  const network = networkOf([small, large, sample(repeat(1, 200), 40)]);
  expect(efficiency(large, network).reliability).toBeGreaterThan(
    efficiency(small, network).reliability,
  );
});

const days = fc.array(fc.integer({ min: 0, max: 15 }), { minLength: 20, maxLength: 60 });

test("sub-scores agree with counting every pair of deliveries, and the index with its weights", () => {
  fc.assert(
    fc.property(days, days, fc.nat(20), fc.nat(20), (mine, others, troubles, otherTroubles) => {
      const own = sample(mine, troubles);
      const all = [...mine, ...others];
      const got = efficiency(own, networkOf([own, sample(others, otherTroubles)]));
      const { index, speed, consistency, reliability } = got;
      expect(speed).toBeCloseTo(100 * pairwise(mine, all), SHOWN_DIGITS);
      expect(consistency).toBeCloseTo(
        100 * pairwise(distances(mine), distances(all)),
        SHOWN_DIGITS,
      );
      expect(index).toBeCloseTo(0.4 * speed + 0.2 * consistency + 0.4 * reliability, SHOWN_DIGITS);
      for (const score of Object.values(got)) {
        if (typeof score === "number") expect(score >= 0 && score <= 100).toBe(true);
      }
    }),
  );
});

function pairwise(own: readonly number[], other: readonly number[]): number {
  let points = 0;
  for (const one of own) for (const two of other) points += one < two ? 1 : one === two ? 0.5 : 0;
  return points / (own.length * other.length);
}

function distances(values: readonly number[]): number[] {
  const sorted = values.toSorted((one, other) => one - other);
  const median = sorted[Math.ceil(values.length / 2) - 1] ?? 0;
  return values.map((value) => Math.abs(value - median));
}
