/** The scripts that delete parked events, called one at a time: those that were applied, and those that have expired. */
import { beforeEach, describe, expect, test } from "bun:test";
import expireSource from "#core/events/store/expire-parked.lua" with { type: "text" };
import parkedCounts from "#core/events/store/parts/parked-counts.lua" with { type: "text" };
import unparkSource from "#core/events/store/unpark.lua" with { type: "text" };
import { run } from "#core/platform/redis/client.ts";
import { scriptOfParts } from "#core/platform/redis/script-parts.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const PARTS = { "parked-counts": parkedCounts };
const unparkScript = scriptOfParts(unparkSource, PARTS);
const expireScript = scriptOfParts(expireSource, PARTS);

const DAY_MS = 86_400_000;
const TODAY = 20_000;
/** The first moment of a day. */
const NOW_MS = TODAY * DAY_MS;

const store = forAll(openTestRedis);
beforeEach(() => store.redis.flushAll());

/** An event under a reference, as park.lua keeps it. */
interface Parked {
  /** Reference and fact key, "a:1". */
  readonly of: string;
  readonly receivedMs?: number;
  /** Where it was sent again. */
  readonly sentMs?: number;
}

async function put(...events: readonly Parked[]): Promise<void> {
  for (const { of, receivedMs = NOW_MS, sentMs } of events) {
    const [reference, factKey = ""] = of.split(":");
    const end = sentMs === undefined ? "" : `,${sentMs}`;
    await store.redis.hSet(`parked:${reference}`, factKey, `[${receivedMs},3,{"n":[1,2]}${end}]`);
    await store.redis.hIncrBy("counts", String(Math.floor((sentMs ?? receivedMs) / DAY_MS)), 1);
  }
}

const keysOf = async (reference: string) =>
  (await store.redis.hKeys(`parked:${reference}`)).toSorted();

/** Days on which events were sent last, counted from today. */
async function countsByDay(): Promise<Record<string, number>> {
  const counts = Object.entries(await store.redis.hGetAll("counts"));
  return Object.fromEntries(counts.map(([day, count]) => [Number(day) - TODAY, Number(count)]));
}

describe("unpark.lua", () => {
  /** @returns how many were forgotten */
  const unpark = (...events: readonly string[]) => {
    const parts = events.map((of) => of.split(":"));
    const keys = ["counts", ...parts.map(([reference]) => `parked:${reference}`)];
    return run<number>(
      store.redis,
      unparkScript,
      keys,
      parts.map(([, factKey = ""]) => factKey),
    );
  };

  test("deletes the events named, and subtracts them from the counts of their days", async () => {
    const yesterdayMs = NOW_MS - 1;
    await put({ of: "a:1" }, { of: "a:2" }, { of: "a:3" }, { of: "b:1" });
    await put({ of: "b:2", receivedMs: yesterdayMs }, { of: "c:1", receivedMs: yesterdayMs });
    expect(await unpark("a:1", "b:2", "a:3", "c:9", "d:1")).toBe(3);
    expect([await keysOf("a"), await keysOf("b"), await keysOf("c")]).toEqual([
      ["2"],
      ["1"],
      ["1"],
    ]);
    expect(await countsByDay()).toEqual({ 0: 2, [-1]: 1 });
    expect(await unpark("a:1", "b:2", "a:3")).toBe(0);
    expect(await countsByDay()).toEqual({ 0: 2, [-1]: 1 });
    expect(await unpark("a:2", "b:1", "c:1")).toBe(3);
    expect(await store.redis.dbSize()).toBe(0);
  });

  test("counts an event that is named twice once", async () => {
    await put({ of: "a:1" }, { of: "b:1" }, { of: "b:2" });
    expect(await unpark("a:1", "b:1", "a:1", "b:1")).toBe(2);
    expect(await countsByDay()).toEqual({ 0: 1 });
  });

  test("counts an event that was sent again on the day of its last sending", async () => {
    await put({ of: "a:1", sentMs: NOW_MS + 2 * DAY_MS }, { of: "a:2" });
    expect(await unpark("a:1")).toBe(1);
    expect(await countsByDay()).toEqual({ 0: 1 });
  });

  test("does not recreate missing counts", async () => {
    await put({ of: "a:1" });
    await store.redis.del("counts");
    expect(await unpark("a:1")).toBe(1);
    expect(await store.redis.dbSize()).toBe(0);
  });
});

describe("expire-parked.lua", () => {
  const LIFE_MS = 7 * DAY_MS;
  const KEPT_MS = 30 * DAY_MS;

  /** @returns how many were deleted */
  const expire = (nowMs: number, ...references: readonly string[]) =>
    run<number>(
      store.redis,
      expireScript,
      ["counts", "due", ...references.map((reference) => `parked:${reference}`)],
      [nowMs, LIFE_MS, KEPT_MS].map(String),
    );

  async function makeDue(...references: readonly string[]): Promise<void> {
    for (const one of references)
      await store.redis.zAdd("due", { value: `parked:${one}`, score: 1 });
  }
  const due = () => store.redis.zRangeWithScores("due", 0, -1);

  test("deletes expired events, to the millisecond, and is due again when the next one expires", async () => {
    await put({ of: "a:1" }, { of: "a:2", receivedMs: NOW_MS + 5 });
    await put({ of: "a:3", receivedMs: NOW_MS + 2 }, { of: "a:4", receivedMs: NOW_MS + 8 });
    await put({ of: "b:1", receivedMs: NOW_MS + 1 });
    await makeDue("a", "b");
    expect(await expire(NOW_MS + LIFE_MS, "a", "b")).toBe(1);
    expect([await keysOf("a"), await keysOf("b")]).toEqual([["2", "3", "4"], ["1"]]);
    expect(await due()).toEqual([
      { value: "parked:b", score: NOW_MS + KEPT_MS + 1 },
      { value: "parked:a", score: NOW_MS + KEPT_MS + 2 },
    ]);
    expect(await countsByDay()).toEqual({ 0: 4 });
    expect(await expire(NOW_MS + LIFE_MS + 5, "a")).toBe(2);
    expect(await keysOf("a")).toEqual(["4"]);
    expect(await countsByDay()).toEqual({ 0: 2 });
  });

  test("leaves nothing of a reference whose events have all expired", async () => {
    await put({ of: "a:1" }, { of: "a:2" }, { of: "b:1" }, { of: "c:1" });
    await makeDue("a", "b", "c", "d");
    expect(await expire(NOW_MS + LIFE_MS, "a", "b", "d")).toBe(3);
    expect((await store.redis.keys("*")).toSorted()).toEqual(["counts", "due", "parked:c"]);
    expect(await due()).toEqual([{ value: "parked:c", score: 1 }]);
    expect(await countsByDay()).toEqual({ 0: 1 });
    expect(await expire(NOW_MS + LIFE_MS, "a", "b", "d")).toBe(0);
    expect(await expire(NOW_MS + LIFE_MS, "c")).toBe(1);
    expect(await store.redis.dbSize()).toBe(0);
  });

  test("an event that was sent again expires that much later", async () => {
    const sentMs = NOW_MS + DAY_MS;
    await put({ of: "a:1", sentMs }, { of: "a:2" });
    expect(await expire(NOW_MS + LIFE_MS, "a")).toBe(1);
    expect(await keysOf("a")).toEqual(["1"]);
    expect(await due()).toEqual([{ value: "parked:a", score: sentMs + KEPT_MS }]);
    expect(await countsByDay()).toEqual({ 1: 1 });
    expect(await expire(sentMs + LIFE_MS, "a")).toBe(1);
    expect(await store.redis.dbSize()).toBe(0);
  });
});
