/** The scripts that every role shares, called one at a time: locks, compare-and-swap of a field, and batched calls. */
import { beforeEach, describe, expect, test } from "bun:test";
import { run, script } from "#core/platform/redis/client.ts";
import lockSource from "#core/platform/redis/lock.lua" with { type: "text" };
import probeSource from "#core/platform/redis/probe.lua" with { type: "text" };
import readSource from "#core/platform/redis/read-fields.lua" with { type: "text" };
import { runTogether } from "#core/platform/redis/run-together.ts";
import swapSource from "#core/platform/redis/swap-field.lua" with { type: "text" };
import { expectExpiry } from "#test/support/data/expect-expiry.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const store = forAll(openTestRedis);
beforeEach(() => store.redis.flushAll());

describe("lock.lua", () => {
  const LEASE_MS = 60_000;

  const KEYS = ["lock", "{lock}:waiting", "{lock}:alive"];
  const WAITERS = 5;
  const PARTY_WAITERS = 3;

  const change = (
    owner: string,
    verb: string,
    leaseMs: number | string = LEASE_MS,
    waitMs: number | string = 0,
  ) => {
    const args = [
      owner,
      verb,
      String(leaseMs),
      String(waitMs),
      ...[WAITERS, PARTY_WAITERS].map(String),
    ];
    return run<number>(store.redis, script(lockSource), KEYS, args);
  };

  const expectLease = (leaseMs: number, call: () => Promise<number>) =>
    expectExpiry(store.redis, "lock", leaseMs, call);

  test("can be taken while free and again by its owner, each time for the lease asked for", async () => {
    expect(await expectLease(LEASE_MS, () => change("me", "take"))).toBe(1);
    expect(await store.redis.get("lock")).toBe("me");
    expect(await expectLease(2 * LEASE_MS, () => change("me", "take", 2 * LEASE_MS))).toBe(1);
    expect(await expectLease(LEASE_MS, () => change("me", "renew"))).toBe(1);
    expect(await store.redis.get("lock")).toBe("me");
  });

  test("cannot be taken, renewed or released by another", async () => {
    await change("me", "take");
    const untilMs = await store.redis.pExpireTime("lock");
    for (const verb of ["take", "renew", "release"]) {
      expect(await change("you", verb, 2 * LEASE_MS)).toBe(0);
      expect(await store.redis.get("lock")).toBe("me");
      expect(await store.redis.pExpireTime("lock")).toBe(untilMs);
    }
  });

  test("is free once its owner has released it", async () => {
    await change("me", "take");
    expect(await change("me", "release", 0)).toBe(1);
    expect(await store.redis.exists("lock")).toBe(0);
    expect(await change("you", "take")).toBe(1);
  });

  test("that no longer exists is neither renewed nor released", async () => {
    expect(await change("me", "renew")).toBe(0);
    expect(await change("me", "release", 0)).toBe(0);
    expect(await store.redis.exists("lock")).toBe(0);
  });

  const wait = (owner: string) => change(owner, "take", LEASE_MS, LEASE_MS);

  test("goes to those who wait, in the order in which they came, however often each asks", async () => {
    await change("me", "take");
    expect([await wait("a"), await wait("b"), await wait("c"), await wait("a")]).toEqual([
      ...[-1, -2, -3, -1],
    ]);
    await change("me", "release", 0);
    expect(await change("you", "take")).toBe(0);
    expect([await wait("b"), await wait("c"), await wait("a")]).toEqual([-2, -3, 1]);
    expect([await wait("b"), await change("c", "leave", 0)]).toEqual([-1, 1]);
    await change("a", "release", 0);
    expect(await wait("b")).toBe(1);
    expect(await store.redis.exists(KEYS)).toBe(1);
  });

  test("goes to one of each party in turn, and to each party's in the order in which they came", async () => {
    await change("me", "take");
    for (const owner of ["acme:1", "acme:2", "acme:3"]) await wait(owner);
    expect(await wait("beta:1")).toBeLessThanOrEqual(-2);
    expect(await wait("alone")).toBeLessThanOrEqual(-2);
    const waiting = await store.redis.zRange("{lock}:waiting", 0, -1);
    expect(waiting[0]).toBe("acme:1");
    expect(waiting.slice(1, 4).sort()).toEqual(["acme:2", "alone", "beta:1"]);
    expect(waiting[4]).toBe("acme:3");
  });

  test(`has ${WAITERS} waiters at most; one more is refused`, async () => {
    await change("me", "take");
    for (const owner of ["a:1", "a:2", "b:1", "b:2", "c:1"])
      expect(await wait(owner)).toBeLessThan(0);
    expect([await wait("d:1"), await wait("c:1")]).toEqual([0, -4]);
  });

  test(`has ${PARTY_WAITERS} waiters of a party at most; one more is refused, those who wait already are not`, async () => {
    await change("me", "take");
    for (const owner of ["a", "b", "c"]) expect(await wait(owner)).toBeLessThan(0);
    expect([await wait("d"), await wait("c")]).toEqual([0, -3]);
    await change("a", "leave", 0);
    expect(await wait("d")).toBe(-3);
  });

  test("is not kept for a waiter that has not asked again in time", async () => {
    await change("me", "take");
    await wait("dead");
    await wait("b");
    await store.redis.zAdd("{lock}:alive", { score: 1, value: "dead" });
    await change("me", "release", 0);
    expect(await wait("b")).toBe(1);
    expect(await store.redis.exists(KEYS)).toBe(1);
  });

  test.each([
    ["an unknown verb", "keep", LEASE_MS, 0],
    ["a missing lease", "take", "", 0],
    ["a missing wait", "take", LEASE_MS, ""],
  ])("rejects %s and does nothing", async (_, verb, leaseMs, waitMs) => {
    await expect(change("me", verb, leaseMs, waitMs)).rejects.toThrow("bad arguments");
    expect(await store.redis.exists(KEYS)).toBe(0);
  });
});

describe("swap-field.lua", () => {
  const swap = (field: string, from: string, to: string) =>
    run<number>(store.redis, script(swapSource), ["hash"], [field, from, to]);

  test("replaces a field that still has the expected value", async () => {
    await store.redis.hSet("hash", { a: "1", b: "1" });
    expect(await swap("a", "1", "2")).toBe(1);
    expect(await store.redis.hGetAll("hash")).toEqual({ a: "2", b: "1" });
  });

  test("leaves a changed field alone, and does not create a missing one", async () => {
    await store.redis.hSet("hash", { a: "1" });
    expect(await swap("a", "0", "2")).toBe(0);
    expect(await swap("b", "", "2")).toBe(0);
    expect(await store.redis.hGetAll("hash")).toEqual({ a: "1" });
  });
});

describe("probe.lua", () => {
  const probe = () => run<number>(store.redis, script(probeSource), ["key"], []);

  test("is refused when a write would be, and writes nothing", async () => {
    expect(await probe()).toBe(1);
    await store.redis.configSet("maxmemory", "1");
    try {
      await expect(probe()).rejects.toThrow("OOM");
    } finally {
      await store.redis.configSet("maxmemory", "0");
    }
    expect(await store.redis.dbSize()).toBe(0);
  });
});

test("read-fields.lua reads the fields of each hash in the order asked for, null for a missing one", async () => {
  await store.redis.hSet("a", { x: "1", y: "2", z: "3" });
  await store.redis.hSet("c", { y: "4" });
  expect(await run<unknown>(store.redis, script(readSource), ["a", "b", "c"], ["y", "x"])).toEqual([
    ["2", "1"],
    [null, null],
    ["4", null],
  ]);
});

describe("run-together.lua", () => {
  type Call = readonly [keys: readonly string[], args: readonly string[]];
  const COST_US = 1;

  const together = (calls: readonly Call[], step: string) =>
    calls.map(([keys, args]) =>
      runTogether(store.redis, script(`#!lua\n${step}`), [...keys], [...args], COST_US),
    );

  test("gives each call its own keys, arguments and reply", async () => {
    const step = "return {table.concat(KEYS, ' '), table.concat(ARGV, ' '), #KEYS, #ARGV}";
    const calls: readonly Call[] = [
      [
        ["a", "b"],
        ["1", "2", "3"],
      ],
      [["c"], []],
      [[], ["4"]],
      [[], []],
      [
        ["d", "e", "f"],
        ["5", "6"],
      ],
    ];
    expect(await Promise.all(together(calls, step))).toEqual(
      calls.map(([keys, args]) => [keys.join(" "), args.join(" "), keys.length, args.length]),
    );
  });

  test("makes the calls in order", async () => {
    const step = "return redis.call('APPEND', KEYS[1], ARGV[1])";
    const calls = ["a", "bc", "d"].map((text): Call => [["key"], [text]]);
    expect(await Promise.all(together(calls, step))).toEqual([1, 3, 4]);
    expect(await store.redis.get("key")).toBe("abcd");
  });

  test("stops at the first call that fails, and fails them all", async () => {
    const step = "return redis.call('INCR', KEYS[1])";
    await store.redis.set("b", "no number");
    const calls = ["a", "b", "c"].map((key): Call => [[key], []]);
    const outcomes = await Promise.allSettled(together(calls, step));
    expect(outcomes.map(({ status }) => status)).toEqual(Array(3).fill("rejected"));
    expect(await store.redis.mGet(["a", "b", "c"])).toEqual(["1", "no number", null]);
  });
});
