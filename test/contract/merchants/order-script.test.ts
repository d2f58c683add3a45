/** save-orders.lua, one call at a time: orders, their index by date and their parcels. */
import { beforeEach, expect, test } from "bun:test";
import saveSource from "#core/merchants/store/save-orders.lua" with { type: "text" };
import { run, script } from "#core/platform/redis/client.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const DATE_MS = 1_800_000_000_000;
const CHANGED = 0;

const store = forAll(openTestRedis);
beforeEach(() => store.redis.flushAll());

interface Saving {
  readonly id: number;
  /** The version that was read. */
  readonly version?: number | string;
  readonly natural?: string;
  readonly dateMs?: number | string;
  readonly deleted?: true;
  readonly record?: string;
  readonly added?: readonly unknown[];
  readonly removed?: readonly string[];
}

/** @returns for each its id, or `CHANGED` */
function save(...savings: readonly Saving[]): Promise<number[]> {
  const keys = ["naturals", "dates", "parcels", ...savings.map(({ id }) => `order:${id}`)];
  const args = savings.flatMap((saving) => {
    const { id, version = 0, natural = `shop:${id}`, dateMs = DATE_MS, deleted } = saving;
    const { record = "{}", added = [], removed = [] } = saving;
    const head = [natural, id, version, dateMs, deleted ? 1 : 0].map(String);
    return [...head, record, JSON.stringify({ added, removed })];
  });
  return run<number[]>(store.redis, script(saveSource), keys, ["12", ...args]);
}

const order = (id: number) => store.redis.hGetAll(`order:${id}`);
const parcels = () => store.redis.hGetAll("parcels");
const dates = () => store.redis.zRangeWithScores("dates", 0, -1);

test("makes new orders available by natural key, date and parcel", async () => {
  const one = { id: 17, record: "one", added: ["p", "q"] };
  const two = { id: 33, record: "two", added: ["r"], dateMs: DATE_MS + 1 };
  expect(await save(one, two)).toEqual([17, 33]);
  expect(await order(17)).toEqual({ v: "1", d: "one" });
  expect(await order(33)).toEqual({ v: "1", d: "two" });
  expect(await store.redis.hGetAll("naturals")).toEqual({ "shop:17": "17", "shop:33": "33" });
  expect(await parcels()).toEqual({ p: "17", q: "17", r: "33" });
  expect(await dates()).toEqual([
    { value: "000000000017", score: DATE_MS },
    { value: "000000000033", score: DATE_MS + 1 },
  ]);
});

test("replaces an order that still has the version that was read", async () => {
  await save({ id: 17, added: ["p", "q"] });
  const change = { id: 17, dateMs: DATE_MS + 1, added: ["r"], removed: ["p"] };
  expect(await save({ ...change, version: 1, record: "two" })).toEqual([17]);
  expect(await order(17)).toEqual({ v: "2", d: "two" });
  expect(await dates()).toEqual([{ value: "000000000017", score: DATE_MS + 1 }]);
  expect(await parcels()).toEqual({ q: "17", r: "17" });
  expect(await store.redis.hGetAll("naturals")).toEqual({ "shop:17": "17" });
  expect(await save({ id: 17, version: 2, record: "three" })).toEqual([17]);
  expect(await order(17)).toEqual({ v: "3", d: "three" });
});

test("keeps an order that was changed in between, and saves the others", async () => {
  await save({ id: 17, record: "one", added: ["p"] });
  await save({ id: 33 });
  const change = { record: "two", added: ["q"], removed: ["p"], deleted: true } as const;
  // Another version, read before it was created, twice another id, and read before it was deleted.
  const naturals = await store.redis.hGetAll("naturals");
  for (const late of [
    { id: 17, version: 2 },
    { id: 17, version: 0 },
    { id: 49, version: 0, natural: "shop:17" },
    { id: 33, version: 1, natural: "shop:17" },
    { id: 65, version: 1 },
  ]) {
    expect(await save({ ...change, ...late })).toEqual([CHANGED]);
  }
  expect(await store.redis.hGetAll("naturals")).toEqual(naturals);
  expect([await order(17), await order(33)]).toEqual([
    { v: "1", d: "one" },
    { v: "1", d: "{}" },
  ]);
  expect(await parcels()).toEqual({ p: "17" });
  expect(await dates()).toHaveLength(2);
  expect(await store.redis.keys("order:*")).toHaveLength(2);
  const both = await save({ ...change, id: 17, version: 2 }, { id: 33, version: 1, record: "two" });
  expect(both).toEqual([CHANGED, 33]);
  expect([await order(17), await order(33)]).toEqual([
    { v: "1", d: "one" },
    { v: "2", d: "two" },
  ]);
});

test("keeps the record of a deleted order, without its date and parcels", async () => {
  await save({ id: 17, added: ["p"] }, { id: 33, added: ["q"] });
  const gone = { id: 17, version: 1, deleted: true, record: "gone", removed: ["p"] } as const;
  expect(await save(gone)).toEqual([17]);
  expect(await order(17)).toEqual({ v: "2", d: "gone" });
  expect((await dates()).map(({ value }) => value)).toEqual(["000000000033"]);
  expect(await parcels()).toEqual({ q: "33" });
  expect(await save({ id: 49, deleted: true })).toEqual([49]);
  expect(await order(49)).toEqual({ v: "1", d: "{}" });
  expect(await dates()).toHaveLength(1);
  expect(await save({ id: 17, version: 2 })).toEqual([17]);
  expect(await dates()).toHaveLength(2);
});

test("does not remove a parcel that has moved to another order", async () => {
  await save({ id: 17, added: ["p", "q"] }, { id: 33 });
  const from = { id: 17, version: 1, removed: ["p"] };
  expect(await save(from, { id: 33, version: 1, added: ["p"] })).toEqual([17, 33]);
  expect(await parcels()).toEqual({ p: "33", q: "17" });
  expect(await save({ ...from, version: 2, removed: ["p", "q"] })).toEqual([17]);
  expect(await parcels()).toEqual({ p: "33" });
});

test("saves no order of a call if one is malformed", async () => {
  const whole = { id: 17, added: ["p"] };
  for (const spoilt of [{ added: [1] }, { version: "x" }, { dateMs: "x" }]) {
    await expect(save(whole, { id: 33, ...spoilt })).rejects.toThrow();
    expect(await store.redis.keys("*")).toEqual([]);
  }
});
