/** Why the efficiency index is published without an interval: one by resampling would promise what it does not keep. */
import { expect, test } from "bun:test";
import { efficiency, type LaneSample, networkOf } from "#core/benchmarks/rules/efficiency-index.ts";
import { MIN_SAMPLE } from "#core/benchmarks/rules/lane.ts";
import { seededRandom } from "#test/support/data/lanes.ts";

interface Delivery {
  readonly days: number;
  readonly isTroubled: boolean;
}

/** Shares of the days from 1 on; a troubled delivery takes two days more. */
interface Courier {
  readonly shares: readonly number[];
  readonly troubled: number;
}

/** The example of docs/analytics.md. */
const FAST: Courier = { shares: [0.5, 0.5], troubled: 0.02 };
const OTHERS: Courier = { shares: [0.3, 0.4, 0.2, 0.1], troubled: 0.08 };
const OTHERS_DELIVERIES = 400;

const SAMPLES = 200;
const RESAMPLES = 60;
const CONFIDENCE = 0.95;

const random = seededRandom(18);

function deliver({ shares, troubled }: Courier): Delivery {
  const isTroubled = random() < troubled;
  let rest = random();
  const at = shares.findIndex((share) => {
    rest -= share;
    return rest < 0;
  });
  return { days: 1 + Math.max(0, at) + (isTroubled ? 2 : 0), isTroubled };
}

const deliveriesOf = (courier: Courier, length: number) =>
  Array.from({ length }, () => deliver(courier));

/** As many of them, drawn with replacement. */
const again = (all: readonly Delivery[]) =>
  all.map(() => all[Math.floor(random() * all.length)] as Delivery);

function sampleOf(all: readonly Delivery[]): LaneSample {
  const counts = new Map<number, number>();
  for (const { days } of all) counts.set(days, (counts.get(days) ?? 0) + 1);
  const leads = [...counts].sort(([one], [other]) => one - other);
  return { leads, transits: [], troubles: all.filter(({ isTroubled }) => isTroubled).length };
}

function indexOf(own: readonly Delivery[], others: readonly Delivery[]): number {
  const sample = sampleOf(own);
  return efficiency(sample, networkOf([sample, sampleOf(others)])).index;
}

test("a 95 % interval by resampling would hold the index in about 6 of 10 samples of 20 deliveries", () => {
  const drawn = Array.from({ length: SAMPLES }, () => ({
    own: deliveriesOf(FAST, MIN_SAMPLE),
    others: deliveriesOf(OTHERS, OTHERS_DELIVERIES),
  }));
  const indices = drawn.map(({ own, others }) => indexOf(own, others));
  const usual = indices.reduce((sum, index) => sum + index, 0) / SAMPLES;
  const held = drawn.filter(({ own, others }) => {
    const resampled = Array.from({ length: RESAMPLES }, () => indexOf(again(own), again(others)));
    const sorted = resampled.sort((one, other) => one - other);
    const cut = Math.floor((RESAMPLES * (1 - CONFIDENCE)) / 2);
    return usual >= (sorted[cut] ?? 0) && usual <= (sorted[RESAMPLES - 1 - cut] ?? 0);
  });
  expect(held.length / SAMPLES).toBeGreaterThan(0.5);
  expect(held.length / SAMPLES).toBeLessThan(0.7);
});
