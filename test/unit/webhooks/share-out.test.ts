import { expect, test } from "bun:test";
import fc from "fast-check";
import { PARTITIONS } from "#core/platform/redis/keys.ts";
import { addSilent, shareOut } from "#processors/webhooks/share-out.ts";

const busy = fc.uniqueArray(fc.integer({ min: 0, max: PARTITIONS - 1 }));
const slots = fc.integer({ min: 0, max: 300 });

test("the shares sum up to the free slots, each partition at most once", () => {
  fc.assert(
    fc.property(slots, slots, busy, fc.nat(1_000), (free, freeFailing, hot, turn) => {
      const shares = shareOut(free, freeFailing, new Set(hot), turn);
      expect(shares.reduce((sum, { wanted }) => sum + wanted, 0)).toBe(free);
      expect(new Set(shares.map(({ partition }) => partition)).size).toBe(shares.length);
      const failing = shares.reduce((sum, { wantedFailing }) => sum + wantedFailing, 0);
      expect(failing).toBeLessThanOrEqual(freeFailing);
    }),
  );
});

test("every partition has its turn within 16 rounds, however few slots are free", () => {
  const seen = new Set<number>();
  for (let turn = 0; turn < PARTITIONS; turn += 1) {
    for (const { partition } of shareOut(1, 1, new Set(), turn)) seen.add(partition);
  }
  expect(seen.size).toBe(PARTITIONS);
});

test("busy partitions come first and get most", () => {
  const [first, ...others] = shareOut(200, 100, new Set([3]), 0);
  expect(first?.partition).toBe(3);
  expect(first?.wanted).toBeGreaterThan(100);
  expect(others.every(({ wanted }) => wanted >= 1)).toBe(true);
});

test("with few partitions a round every busy one has its turn within four rounds", () => {
  const all = new Set(Array.from({ length: PARTITIONS }, (_, n) => n));
  const seen = new Set<number>();
  for (let turn = 0; turn < 4; turn += 1) {
    const shares = shareOut(50, 25, all, turn, 4);
    expect(shares.reduce((sum, { wanted }) => sum + wanted, 0)).toBe(50);
    expect(shares).toHaveLength(4);
    for (const { partition } of shares) seen.add(partition);
  }
  expect(seen.size).toBe(PARTITIONS);
});

test("silent endpoints take nothing from the slots, and each of their partitions has its turn", () => {
  fc.assert(
    fc.property(slots, slots, busy, busy, fc.nat(1_000), (free, wanted, hot, silent, turn) => {
      const shares = shareOut(free, free, new Set(hot), turn, 8);
      const all = addSilent(shares, wanted, new Set(silent), turn);
      expect(all.filter((share) => share.wanted > 0)).toMatchObject(shares);
      expect(new Set(all.map(({ partition }) => partition)).size).toBe(all.length);
      const asked = all.filter(({ wantedSilent }) => wantedSilent > 0);
      expect(asked.reduce((sum, { wantedSilent }) => sum + wantedSilent, 0)).toBe(
        silent.length === 0 ? 0 : wanted,
      );
      expect(asked.every(({ partition }) => silent.includes(partition))).toBe(true);
    }),
  );
  const seen = [0, 1, 2].flatMap((turn) => addSilent([], 1, new Set([2, 5, 9]), turn));
  expect(seen.map(({ partition }) => partition)).toEqual([2, 5, 9]);
});
