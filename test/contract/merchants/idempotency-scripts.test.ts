/** The idempotency key scripts, called one at a time: requests begin, are repeated and end. */
import { beforeEach, describe, expect, test } from "bun:test";
import beginSource from "#core/merchants/store/begin-request.lua" with { type: "text" };
import endSource from "#core/merchants/store/end-request.lua" with { type: "text" };
import { run, script } from "#core/platform/redis/client.ts";
import { expectExpiry } from "#test/support/data/expect-expiry.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const NOW_MS = 1_800_000_000_000;
const LEASE_MS = 60_000;
const LIFE_MS = 86_400_000;

const store = forAll(openTestRedis);
beforeEach(() => store.redis.flushAll());

/** Keys of a request. A panel caller's idempotency keys are counted; a channel's are not. */
const keysOf = (key: string, caller: boolean) => [`request:${key}`, ...(caller ? ["keys"] : [])];

function begin(
  key: string,
  { atMs = 0, by = "me", print = "print", most = 100, caller = false } = {},
): Promise<string[]> {
  const times = [NOW_MS + atMs, LEASE_MS, LIFE_MS].map(String);
  const args = [print, by, ...times, key, String(most)];
  return run<string[]>(store.redis, script(beginSource), keysOf(key, caller), args);
}

function end(key: string, { by = "me", answer = "", caller = false } = {}): Promise<number> {
  return run<number>(store.redis, script(endSource), keysOf(key, caller), [by, answer, key]);
}

const request = (key: string) => store.redis.hGetAll(`request:${key}`);
const counted = () => store.redis.zRangeWithScores("keys", 0, -1);

describe("begin-request.lua", () => {
  test("leases a new key to its owner, and keeps it for 24 hours", async () => {
    const begun = expectExpiry(store.redis, "request:a", LIFE_MS, () => begin("a"));
    expect(await begun).toEqual(["begun"]);
    expect(await request("a")).toEqual({
      fingerprint: "print",
      owner: "me",
      leased: String(NOW_MS + LEASE_MS),
      until: String(NOW_MS + LIFE_MS),
    });
    expect(await store.redis.keys("*")).toEqual(["request:a"]);
  });

  test("reports a repeat as running until the owner's lease ends", async () => {
    await begin("a");
    expect(await begin("a", { by: "you", atMs: LEASE_MS - 1 })).toEqual(["running"]);
    expect(await begin("a", { print: "another", atMs: LEASE_MS })).toEqual(["other"]);
    expect((await request("a"))["owner"]).toBe("me");
    expect(await begin("a", { by: "you", atMs: LEASE_MS })).toEqual(["begun"]);
    expect((await request("a"))["owner"]).toBe("you");
  });

  test("answers every repeat until the key expires", async () => {
    await begin("a");
    await end("a", { answer: "201" });
    for (const atMs of [0, LEASE_MS, LIFE_MS - 1]) {
      expect(await begin("a", { atMs })).toEqual(["answered", "201"]);
      expect(await begin("a", { atMs, print: "another" })).toEqual(["other"]);
    }
    expect(await begin("a", { atMs: LIFE_MS, print: "another" })).toEqual(["begun"]);
    expect(await begin("a", { atMs: LIFE_MS, print: "another" })).toEqual(["running"]);
  });

  test("counts a caller's keys until each expires", async () => {
    const caller = true;
    expect(await begin("a", { caller })).toEqual(["begun"]);
    const next = () => begin("b", { caller, atMs: 1 });
    expect(await expectExpiry(store.redis, "keys", LIFE_MS, next)).toEqual(["begun"]);
    expect(await counted()).toEqual([
      { value: "a", score: NOW_MS + LIFE_MS },
      { value: "b", score: NOW_MS + LIFE_MS + 1 },
    ]);
    await begin("c", { caller, atMs: LIFE_MS });
    expect((await counted()).map(({ value }) => value)).toEqual(["b", "c"]);
  });

  test("refuses a caller's third key until the first expires", async () => {
    const terms = { caller: true, most: 2 };
    for (const [atMs, key] of ["a", "b"].entries()) await begin(key, { ...terms, atMs });
    const full = ["full", String(NOW_MS + LIFE_MS)];
    for (const atMs of [2, LIFE_MS - 1]) expect(await begin("c", { ...terms, atMs })).toEqual(full);
    expect(await store.redis.exists("request:c")).toBe(0);
    expect((await counted()).map(({ value }) => value)).toEqual(["a", "b"]);
    expect(await begin("c", { ...terms, atMs: LIFE_MS })).toEqual(["begun"]);
    expect((await counted()).map(({ value }) => value)).toEqual(["b", "c"]);
  });

  test("lets a caller at its limit repeat a request", async () => {
    const terms = { caller: true, most: 2 };
    for (const key of ["a", "b"]) await begin(key, terms);
    expect(await begin("b", terms)).toEqual(["running"]);
    expect(await begin("a", { ...terms, atMs: LEASE_MS })).toEqual(["begun"]);
    expect(await counted()).toHaveLength(2);
  });
});

describe("end-request.lua", () => {
  test("replaces the owner by the answer, and ignores a second answer", async () => {
    await begin("a");
    const { owner: _, ...remembered } = await request("a");
    const untilMs = await store.redis.pExpireTime("request:a");
    expect(await end("a", { answer: "201" })).toBe(1);
    expect(await request("a")).toEqual({ ...remembered, answer: "201" });
    expect(await store.redis.pExpireTime("request:a")).toBe(untilMs);
    expect(await end("a", { answer: "202" })).toBe(0);
    expect(await end("a")).toBe(0);
    expect((await request("a"))["answer"]).toBe("201");
  });

  test.each([[true], [false]])(
    "forgets a key that ends without an answer (counted: %p)",
    async (caller) => {
      for (const key of ["a", "b"]) await begin(key, { caller });
      expect(await end("a", { caller })).toBe(1);
      expect(await store.redis.exists("request:a")).toBe(0);
      expect((await counted()).map(({ value }) => value)).toEqual(caller ? ["b"] : []);
      expect(await begin("a", { caller, print: "another" })).toEqual(["begun"]);
    },
  );

  test("does nothing for a process that has lost the lease, or after the key has expired", async () => {
    const caller = true;
    await begin("a", { caller });
    await begin("a", { caller, by: "you", atMs: LEASE_MS });
    const before = await request("a");
    for (const answer of ["201", ""]) expect(await end("a", { caller, answer })).toBe(0);
    expect(await request("a")).toEqual(before);
    expect(await counted()).toHaveLength(1);
    await store.redis.flushAll();
    for (const answer of ["201", ""]) expect(await end("a", { caller, answer })).toBe(0);
    expect(await store.redis.keys("*")).toEqual([]);
  });
});
