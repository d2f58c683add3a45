/** The courier scripts, called one at a time: request rate, number conflicts and hourly counts. */
import { beforeEach, describe, expect, test } from "bun:test";
import rateSource from "#core/events/store/courier-rate.lua" with { type: "text" };
import forgetSource from "#core/events/store/forget-counts.lua" with { type: "text" };
import noteSource from "#core/events/store/note-conflicts.lua" with { type: "text" };
import { run, script } from "#core/platform/redis/client.ts";
import { expectExpiry } from "#test/support/data/expect-expiry.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const store = forAll(openTestRedis);
beforeEach(() => store.redis.flushAll());

describe("courier-rate.lua", () => {
  const NOW_MS = 1_000_000;
  /** From an empty bucket to its first token. A power of two, so that fractions of a token are exact. */
  const TOKEN_MS = 8_192;

  /** @returns tokens taken, whole tokens left, milliseconds until the next */
  const take = (asked: number, afterMs = 0, { tokenMs = TOKEN_MS, burst = 5 } = {}) =>
    run<number[]>(
      store.redis,
      script(rateSource),
      ["bucket"],
      [NOW_MS + afterMs, 1_000 / tokenMs, burst, asked].map(String),
    );
  const bucket = () => store.redis.hGetAll("bucket");

  test("lets a burst through at once, and nothing beyond it", async () => {
    expect(await take(3)).toEqual([3, 2, 0]);
    expect(await take(1)).toEqual([1, 1, 0]);
    expect(await take(3)).toEqual([1, 0, TOKEN_MS]);
    expect(await take(1)).toEqual([0, 0, TOKEN_MS]);
    expect(await bucket()).toEqual({ tokens: "0", at: String(NOW_MS) });
    expect(await take(0)).toEqual([0, 0, TOKEN_MS]);
  });

  test("the next token is there when promised, to the millisecond", async () => {
    await take(5);
    expect(await take(1, TOKEN_MS / 2)).toEqual([0, 0, TOKEN_MS / 2]);
    expect(await take(1, TOKEN_MS - 1)).toEqual([0, 0, 1]);
    expect(await take(0, TOKEN_MS)).toEqual([0, 1, 0]);
    expect(await take(2, TOKEN_MS)).toEqual([1, 0, TOKEN_MS]);
    expect(await take(1, 3 * TOKEN_MS)).toEqual([1, 1, 0]);
  });

  test("the bucket refills up to its size and no further", async () => {
    await take(5);
    expect(await take(6, 100 * TOKEN_MS)).toEqual([5, 0, TOKEN_MS]);
  });

  test("a clock that goes back refills nothing and takes nothing away", async () => {
    await take(2, 2 * TOKEN_MS);
    expect(await take(1)).toEqual([1, 2, 0]);
    expect(await bucket()).toEqual({ tokens: "2", at: String(NOW_MS + 2 * TOKEN_MS) });
  });

  test("the bucket expires a second after it would be full", async () => {
    for (const limits of [
      { tokenMs: TOKEN_MS, burst: 5 },
      { tokenMs: 1_000_000, burst: 10 },
    ]) {
      const lifeMs = limits.tokenMs * limits.burst + 1_000;
      await expectExpiry(store.redis, "bucket", lifeMs, () => take(1, 0, limits));
    }
  });
});

describe("note-conflicts.lua", () => {
  /** @returns for each 1 = listed now, 0 = listed before */
  const note = (conflicts: ReadonlyArray<readonly [name: string, atMs: number]>, limit = 10) =>
    run<number[]>(
      store.redis,
      script(noteSource),
      ["list", "by-time"],
      [
        String(limit),
        ...conflicts.flatMap(([name, atMs]) => [name, String(atMs), `${name}@${atMs}`]),
      ],
    );
  const byTime = () => store.redis.zRangeWithScores("by-time", 0, -1);

  test("lists each conflict once, as first noted", async () => {
    expect(
      await note([
        ["a", 20],
        ["b", 10],
        ["a", 30],
      ]),
    ).toEqual([1, 1, 0]);
    expect(await note([["b", 40]])).toEqual([0]);
    expect(await store.redis.hGetAll("list")).toEqual({ a: "a@20", b: "b@10" });
    expect(await byTime()).toEqual([
      { value: "b", score: 10 },
      { value: "a", score: 20 },
    ]);
  });

  test("lists 3 conflicts, and a fourth replaces the oldest, whatever the order", async () => {
    expect(
      await note(
        [
          ["b", 20],
          ["a", 10],
          ["c", 30],
        ],
        3,
      ),
    ).toEqual([1, 1, 1]);
    expect(await store.redis.zRange("by-time", 0, -1)).toEqual(["a", "b", "c"]);
    expect(await note([["d", 40]], 3)).toEqual([1]);
    expect(await store.redis.zRange("by-time", 0, -1)).toEqual(["b", "c", "d"]);
    expect(await store.redis.hGetAll("list")).toEqual({ b: "b@20", c: "c@30", d: "d@40" });
    expect(await note([["e", 50]], 1)).toEqual([1]);
    expect(await store.redis.hKeys("list")).toEqual(["e"]);
    expect(await store.redis.zRange("by-time", 0, -1)).toEqual(["e"]);
  });
});

describe("forget-counts.lua", () => {
  const forget = (...hours: ReadonlyArray<readonly [hour: string, sum: number]>) =>
    run<number>(
      store.redis,
      script(forgetSource),
      ["hours", ...hours.map(([hour]) => `counts:${hour}`)],
      hours.flatMap(([hour, sum]) => [hour, String(sum)]),
    );

  async function count(hour: string, counts: Record<string, number>): Promise<void> {
    await store.redis.sAdd("hours", hour);
    await store.redis.hSet(`counts:${hour}`, counts);
  }

  test("forgets hours that have not changed since they were written, and keeps those that have", async () => {
    await count("1", { accepted: 3, duplicate: 2 });
    await count("2", { accepted: 4 });
    await count("3", { accepted: 1, duplicate: 1 });
    expect(await forget(["1", 5], ["2", 3], ["3", 2])).toBe(2);
    expect(await store.redis.sMembers("hours")).toEqual(["2"]);
    expect(await store.redis.keys("counts:*")).toEqual(["counts:2"]);
    expect(await store.redis.hGetAll("counts:2")).toEqual({ accepted: "4" });
    expect(await forget(["2", 4])).toBe(1);
    expect(await store.redis.dbSize()).toBe(0);
  });

  test("forgets an hour that is no longer listed, and one without counts", async () => {
    await store.redis.hSet("counts:1", { accepted: 3 });
    await store.redis.sAdd("hours", ["2", "3"]);
    expect(await forget(["1", 3], ["2", 0])).toBe(2);
    expect(await store.redis.keys("*")).toEqual(["hours"]);
    expect(await store.redis.sMembers("hours")).toEqual(["3"]);
  });
});
