/** The scripts of consumer groups, called one at a time: lag, trimming, idle consumers and due retries. */
import { beforeEach, describe, expect, test } from "bun:test";
import dropSource from "#core/platform/log/drop-consumer.lua" with { type: "text" };
import dueSource from "#core/platform/log/due-retries.lua" with { type: "text" };
import readLagSource from "#core/platform/log/read-lag.lua" with { type: "text" };
import trimSource from "#core/platform/log/trim-log.lua" with { type: "text" };
import { run, script } from "#core/platform/redis/client.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const store = forAll(openTestRedis);
beforeEach(() => store.redis.flushAll());

async function fill(...ids: readonly string[]): Promise<void> {
  for (const id of ids) await store.redis.xAdd("log", id, { e: id });
}

async function open(...groups: readonly string[]): Promise<void> {
  for (const group of groups) await store.redis.xGroupCreate("log", group, "0", { MKSTREAM: true });
}

/** Entries that a consumer of the group takes. */
async function read(group: string, count: number, consumer = "me"): Promise<void> {
  await store.redis.xReadGroup(group, consumer, { key: "log", id: ">" }, { COUNT: count });
}

/** Entries that the group takes and acknowledges. */
async function finish(group: string, count: number): Promise<void> {
  if (count > 0) await read(group, count);
  for (const { id } of await store.redis.xPendingRange("log", group, "-", "+", 100)) {
    await store.redis.xAck("log", group, String(id));
  }
}

describe("read-lag.lua", () => {
  /** @returns for each group its lag, and when the oldest item in it came; null = there is none */
  async function lags(...groups: readonly string[]) {
    const keys = ["log", "counts", ...groups.map((group) => `retries:${group}`)];
    const reply = await run<Array<number | string>>(store.redis, script(readLagSource), keys, [
      ...groups,
    ]);
    return groups.map((_, at) => [reply[2 * at], reply[2 * at + 1] || null]);
  }

  test("a group has no lag if the log or the group does not exist", async () => {
    expect(await lags("a", "b")).toEqual([
      [0, null],
      [0, null],
    ]);
    await fill("1-0");
    await open("b");
    expect(await lags("a", "b")).toEqual([
      [0, null],
      [1, "1"],
    ]);
  });

  test("a group's lag is what was logged minus what it has done, from its oldest entry on", async () => {
    await fill("5-0", "6-0", "7-0");
    await open("a", "b", "c");
    await store.redis.hSet("counts", { logged: "10", a: "4", c: "10" });
    await read("a", 2);
    await finish("b", 2);
    await finish("c", 3);
    expect(await lags("a", "b", "c")).toEqual([
      [6, "5"],
      [10, "7"],
      [0, null],
    ]);
  });

  test("a group with no entries left has no lag, whatever the counts say", async () => {
    await fill("5-0");
    await open("a");
    await finish("a", 1);
    await store.redis.hSet("counts", { logged: "10", a: "4" });
    expect(await lags("a")).toEqual([[0, null]]);
  });

  test("the lag is at least what is pending, and one more if there are unread entries", async () => {
    await fill("5-0", "6-0", "7-0", "8-0");
    await open("unread", "taken", "both");
    await store.redis.hSet("counts", { logged: "9", unread: "9", taken: "9", both: "9" });
    await read("taken", 4);
    await read("both", 2);
    expect(await lags("unread", "taken", "both")).toEqual([
      [1, "5"],
      [4, "5"],
      [3, "5"],
    ]);
  });

  test("without counts the lag is counted in entries", async () => {
    await fill("5-0", "6-0", "7-0", "8-0");
    await open("none", "one", "taken", "all");
    await finish("one", 1);
    await read("taken", 1);
    await read("all", 4);
    expect(await lags("none", "one", "taken", "all")).toEqual([
      [4, "5"],
      [3, "6"],
      [4, "5"],
      [4, "5"],
    ]);
    // From here on Redis does not know how far a group is behind.
    await store.redis.xDel("log", "7-0");
    expect(await lags("none", "one")).toEqual([
      [3, "5"],
      [3, "6"],
    ]);
  });

  test("retries count as well, and one may be the oldest item", async () => {
    await fill("9-0");
    await open("a", "b", "c");
    await finish("c", 1);
    const retry = (group: string, ...times: readonly number[]) =>
      store.redis.zAdd(
        `retries:${group}`,
        times.map((score) => ({ score, value: String(score) })),
      );
    await retry("a", 12, 10);
    await retry("b", 8, 10, 11);
    await retry("c", 11, 10);
    expect(await lags("a", "b", "c", "other")).toEqual([
      [3, "9"],
      [4, "8"],
      [2, "10"],
      [0, null],
    ]);
  });
});

describe("trim-log.lua", () => {
  /** @returns how many are left */
  const trim = (...groups: readonly string[]) =>
    run<number>(store.redis, script(trimSource), ["log", "counts"], [...groups]);

  const left = async () => ((await store.redis.xRange("log", "-", "+")) ?? []).map(({ id }) => id);

  test("does not create a missing log", async () => {
    expect(await trim("a")).toBe(0);
    expect(await store.redis.keys("*")).toEqual([]);
  });

  test("deletes nothing while a group is missing", async () => {
    await fill("1-0", "2-0");
    await open("a");
    await finish("a", 2);
    expect(await trim("a", "b")).toBe(2);
    expect(await trim("b")).toBe(2);
    expect(await trim("a")).toBe(0);
  });

  const IDS = ["6-9", "7-1", "7-2", "7-3", "8-0"];
  const pairs = IDS.flatMap((_, one) => IDS.map((__, other) => [one, other] as const));

  test.each(pairs)("deletes only what every group has done: %d and %d of 5", async (a, b) => {
    await fill(...IDS);
    await open("a", "b");
    await finish("a", a);
    await finish("b", b);
    expect(await trim("a", "b")).toBe(IDS.length - Math.min(a, b));
    expect(await left()).toEqual(IDS.slice(Math.min(a, b)));
  });

  test("keeps a pending entry, and everything after it", async () => {
    await fill(...IDS);
    await open("a", "b");
    await finish("a", 5);
    await finish("b", 1);
    await read("b", 3);
    expect(await trim("a", "b")).toBe(4);
    expect(await left()).toEqual(IDS.slice(1));
    await finish("b", 0);
    expect(await trim("a", "b")).toBe(1);
  });

  test("waits for groups that were not named, too", async () => {
    await fill(...IDS);
    await open("a", "reader");
    await finish("a", 5);
    expect(await trim("a")).toBe(5);
    await finish("reader", 5);
    expect(await trim("a")).toBe(0);
  });

  test("sets the count of a group with no entries left to all that was logged", async () => {
    await fill(...IDS);
    await open("done", "taken", "unread");
    await store.redis.hSet("counts", { logged: "9", done: "4", taken: "4", unread: "4" });
    await finish("done", 5);
    await read("taken", 5);
    await finish("unread", 4);
    await trim("done", "taken", "unread");
    const counts = { logged: "9", done: "9", taken: "4", unread: "4" };
    expect(await store.redis.hGetAll("counts")).toEqual(counts);
    await trim("done", "taken", "unread");
    expect(await store.redis.hGetAll("counts")).toEqual(counts);
  });

  test("leaves the counts alone if nothing was logged", async () => {
    await fill(...IDS);
    await open("a");
    await finish("a", 5);
    await store.redis.hSet("counts", { a: "4" });
    expect(await trim("a")).toBe(0);
    expect(await store.redis.hGetAll("counts")).toEqual({ a: "4" });
  });
});

describe("drop-consumer.lua", () => {
  const drop = (consumer: string) =>
    run<number>(store.redis, script(dropSource), ["log"], ["a", consumer]);

  test("deletes a consumer once it has no pending entries", async () => {
    await fill("1-0", "2-0");
    await open("a");
    await read("a", 1, "one");
    await read("a", 1, "two");
    const names = async () =>
      (await store.redis.xInfoConsumers("log", "a")).map(({ name }) => name);
    expect([await drop("one"), await names()]).toEqual([0, ["one", "two"]]);
    await store.redis.xAck("log", "a", "1-0");
    expect([await drop("one"), await names()]).toEqual([1, ["two"]]);
    expect((await store.redis.xPending("log", "a")).pending).toBe(1);
  });
});

describe("due-retries.lua", () => {
  const due = (limit: number) =>
    run<string[]>(store.redis, script(dueSource), ["retries"], [String(limit)]);

  test("reads only what is due, earliest first, up to the limit", async () => {
    expect(await due(2)).toEqual([]);
    const nowMs = Date.now();
    await store.redis.zAdd("retries", [
      { value: "redriven", score: 0 },
      { value: "now", score: nowMs },
      { value: "before", score: nowMs - 60_000 },
      { value: "later", score: nowMs + 60_000 },
    ]);
    expect(await due(1)).toEqual(["redriven"]);
    expect(await due(2)).toEqual(["redriven", "before"]);
    for (const limit of [3, 4]) expect(await due(limit)).toEqual(["redriven", "before", "now"]);
  });
});
