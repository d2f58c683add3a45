/** What expected delivery is computed from, as Redis keeps it (`stay-cells.ts`). */
import { expect, test } from "bun:test";
import {
  LANES_OF_COURIER,
  readStayCells,
  type StayLane,
  writeStayCells,
} from "#core/benchmarks/store/stay-cells.ts";
import { stayCellsKeys } from "#core/platform/redis/keys.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const store = forAll(openTestRedis);

const lane = (destCap: string, deliveries: number): StayLane => ({
  destCap,
  cells: [{ grain: "cap", origin: "", band: "", stage: "", stays: [[0, 2, deliveries]] }],
});

test("a count replaces the one before it, and nothing is known before the first", async () => {
  expect(await readStayCells(store.redis, "GLS_ITA", "00184")).toBeNull();
  await writeStayCells(store.redis, "GLS_ITA", [lane("00184", 20), lane("20121", 21)], 1);
  await writeStayCells(store.redis, "GLS_ITA", [lane("00184", 22)], 2);
  expect(await readStayCells(store.redis, "GLS_ITA", "00184")).toEqual({
    asOfMs: 2,
    cells: lane("00184", 22).cells,
  });
  expect(await readStayCells(store.redis, "GLS_ITA", "20121")).toEqual({ asOfMs: 2, cells: [] });
  expect(await readStayCells(store.redis, "BRT_ITA", "00184")).toBeNull();
});

test("a courier has at most 5,000 destinations, and its counts expire", async () => {
  const lanes = Array.from({ length: LANES_OF_COURIER + 1 }, (_, at) => lane(String(at), 20));
  await writeStayCells(store.redis, "BRT_ITA", lanes, 1);
  const { current, next } = stayCellsKeys("BRT_ITA");
  // One more field says when they were counted.
  expect(await store.redis.hLen(current)).toBe(LANES_OF_COURIER + 1);
  expect(await store.redis.hExists(current, String(LANES_OF_COURIER - 1))).toBe(1);
  expect(await store.redis.exists(next)).toBe(0);
  expect(await store.redis.pTTL(current)).toBeGreaterThan(0);
});
