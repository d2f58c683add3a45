/** renew.lua and reclaim.lua, one call at a time: leases are renewed, and expired ones reclaimed. */
import { beforeEach, describe, expect, test } from "bun:test";
import { run, script } from "#core/platform/redis/client.ts";
import reclaimSource from "#core/webhooks/store/deliveries/reclaim.lua" with { type: "text" };
import renewSource from "#core/webhooks/store/deliveries/renew.lua" with { type: "text" };
import { scoresOf } from "#test/support/data/scores-of.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const store = forAll(openTestRedis);
beforeEach(() => store.redis.flushAll());

const LEASE_MS = 60_000;

describe("renew.lua", () => {
  const renew = (...leases: readonly string[]) =>
    run<number>(store.redis, script(renewSource), ["leases"], [String(LEASE_MS), ...leases]);

  test("renews the leases named, from now on, and no others", async () => {
    const leases = ["a d1 1", "a d2 2", "b d3 3"];
    await store.redis.zAdd(
      "leases",
      leases.map((value) => ({ value, score: 7 })),
    );
    const fromMs = Date.now();
    expect(await renew("a d1 1", "b d3 3")).toBe(2);
    const {
      "a d1 1": one,
      "a d2 2": other,
      "b d3 3": last,
    } = await scoresOf(store.redis, "leases");
    expect(one).toBeWithin(fromMs + LEASE_MS, Date.now() + LEASE_MS + 1);
    expect([last, other]).toEqual([one, 7]);
  });

  test("renews a single lease, and does nothing without one", async () => {
    await store.redis.zAdd("leases", { value: "a d1 1", score: 7 });
    expect(await renew()).toBe(0);
    expect(await scoresOf(store.redis, "leases")).toEqual({ "a d1 1": 7 });
    expect(await renew("a d1 1")).toBe(1);
    expect(await store.redis.zScore("leases", "a d1 1")).toBeGreaterThan(LEASE_MS);
  });

  test("does not recreate a lease that no longer exists", async () => {
    expect(await renew("a d1 1")).toBe(0);
    expect(await store.redis.dbSize()).toBe(0);
  });
});

describe("reclaim.lua", () => {
  /** Service clock; the leases end by that of Redis. */
  const NOW_MS = 1_000_000;
  /** Where the scores of failing endpoints begin. */
  const FAILING = 1e15;

  interface UnderWay {
    /** "waiting" for a retry; null = the delivery is gone. */
    readonly state?: string | null;
    readonly dueMs?: number;
    readonly endsInMs?: number;
  }

  /** @param lease `endpoint delivery lease` */
  async function send(lease: string, of: UnderWay = {}): Promise<void> {
    const { state = "queued", dueMs, endsInMs = -1 } = of;
    const [endpoint = "", delivery = "", own = ""] = lease.split(" ");
    await store.redis.zAdd("leases", { value: lease, score: Date.now() + endsInMs });
    await store.redis.hIncrBy("flight", own.startsWith("w") ? `w ${endpoint}` : endpoint, 1);
    if (state !== null) await store.redis.hSet(delivery, { s: state, d: String(dueMs ?? "") });
  }

  function reclaim(...leases: readonly string[]): Promise<number> {
    const perLease = leases.flatMap((lease) => {
      const [endpoint = "", delivery = ""] = lease.split(" ");
      return [delivery, `queue:${endpoint}`, `retries:${endpoint}`];
    });
    const fixed = ["ring", "retry-ring", "leases", "flight", "turns", "failing", "ledger"];
    const args = [String(NOW_MS), String(FAILING), ...leases];
    return run<number>(store.redis, script(reclaimSource), [...fixed, ...perLease], args);
  }

  const queueOf = (endpoint: string) => store.redis.lRange(`queue:${endpoint}`, 0, -1);

  test("returns first attempts to the head of their queue, and their endpoint to the end of the ring", async () => {
    await store.redis.set("turns", "5");
    await store.redis.rPush("queue:a", "a3");
    await send("a a1 1");
    await send("a a2 2");
    await send("b b1 3");
    await store.redis.zAdd("ring", { value: "other", score: 5 });
    expect(await reclaim("a a1 1", "a a2 2", "b b1 3")).toBe(3);
    const [one, two, three] = await queueOf("a");
    expect([[one, two].toSorted(), three]).toEqual([["a1", "a2"], "a3"]);
    expect(await queueOf("b")).toEqual(["b1"]);
    expect(await scoresOf(store.redis, "ring")).toEqual({ other: 5, a: 6, b: 7 });
    const keys = ["leases", "flight", "ledger", "retry-ring", "retries:a", "retries:b"];
    expect(await store.redis.exists(keys)).toBe(0);
  });

  test("keeps the place of an endpoint that is in the ring", async () => {
    await store.redis.set("turns", "9");
    await store.redis.zAdd("ring", { value: "a", score: 4 });
    await store.redis.rPush("queue:a", "a2");
    await send("a a1 1");
    expect(await reclaim("a a1 1")).toBe(1);
    expect(await queueOf("a")).toEqual(["a1", "a2"]);
    expect([await scoresOf(store.redis, "ring"), await store.redis.get("turns")]).toEqual([
      { a: 4 },
      "9",
    ]);
  });

  test("returns retries with their due times, and their endpoint with the earliest", async () => {
    await store.redis.zAdd("retries:b", { value: "b1", score: 300 });
    await send("a a1 1", { state: "waiting", dueMs: 500 });
    await send("b b2 2", { state: "waiting", dueMs: 700 });
    await send("c c1 3", { state: "waiting" });
    expect(await reclaim("a a1 1", "b b2 2", "c c1 3")).toBe(3);
    expect(await scoresOf(store.redis, "retries:a")).toEqual({ a1: 500 });
    expect(await scoresOf(store.redis, "retries:b")).toEqual({ b1: 300, b2: 700 });
    expect(await scoresOf(store.redis, "retries:c")).toEqual({ c1: NOW_MS });
    expect(await scoresOf(store.redis, "retry-ring")).toEqual({ a: 500, b: 300, c: NOW_MS });
    const keys = ["ring", "leases", "flight", "ledger", "queue:a", "queue:b"];
    expect(await store.redis.exists(keys)).toBe(0);
  });

  test("puts a failing endpoint behind the healthy ones, in both rings", async () => {
    await store.redis.zAdd("failing", { value: "a", score: 1 });
    await send("a a1 1");
    await send("a a2 2", { state: "waiting", dueMs: 500 });
    expect(await reclaim("a a1 1", "a a2 2")).toBe(2);
    expect(await scoresOf(store.redis, "ring")).toEqual({ a: FAILING + 1 });
    expect(await scoresOf(store.redis, "retry-ring")).toEqual({ a: FAILING + 500 });
  });

  test("counts a delivery that expired in flight as failed, and queues it nowhere", async () => {
    await store.redis.hSet("ledger", "webhook:failed", "4");
    await send("a gone 1", { state: null });
    expect(await reclaim("a gone 1")).toBe(1);
    expect(await store.redis.hGetAll("ledger")).toEqual({ "webhook:failed": "5" });
    await send("a gone 2", { state: null });
    await send("b lost 3", { state: null });
    await send("b b1 4");
    expect(await reclaim("a gone 2", "b lost 3", "b b1 4")).toBe(3);
    expect(await store.redis.hGetAll("ledger")).toEqual({ "webhook:failed": "7" });
    expect(await scoresOf(store.redis, "ring")).toEqual({ b: 1 });
    expect(await store.redis.exists(["leases", "flight", "queue:a", "retry-ring"])).toBe(0);
  });

  test("changes no lease that was renewed or settled since", async () => {
    await send("a a1 1", { endsInMs: LEASE_MS });
    await store.redis.hIncrBy("flight", "b", 1);
    const leases = await scoresOf(store.redis, "leases");
    expect(await reclaim("a a1 1", "b settled 2")).toBe(0);
    expect(await scoresOf(store.redis, "leases")).toEqual(leases);
    expect(await store.redis.hGetAll("flight")).toEqual({ a: "1", b: "1" });
    expect(await store.redis.exists(["ring", "queue:a", "queue:b", "ledger"])).toBe(0);
    await send("a a2 3");
    expect(await reclaim("a a1 1", "a a2 3", "b settled 2")).toBe(1);
    expect(await queueOf("a")).toEqual(["a2"]);
    expect(await scoresOf(store.redis, "leases")).toEqual(leases);
    expect(await store.redis.hGetAll("flight")).toEqual({ a: "1", b: "1" });
  });

  test("counts what takes no slot apart from what takes one", async () => {
    for (const lease of ["a a1 w1", "a a2 w2", "a a3 w3", "a a4 4", "b b1 w5"]) await send(lease);
    expect(await reclaim("a a1 w1", "a a2 w2", "b b1 w5")).toBe(3);
    expect(await store.redis.hGetAll("flight")).toEqual({ a: "1", "w a": "1" });
    expect(await reclaim("a a4 4")).toBe(1);
    expect(await store.redis.hGetAll("flight")).toEqual({ "w a": "1" });
  });

  test("does not let a lost count fall below zero", async () => {
    await send("a a1 1");
    await store.redis.del("flight");
    expect(await reclaim("a a1 1")).toBe(1);
    expect(await store.redis.exists("flight")).toBe(0);
  });

  test("does nothing without a lease", async () => {
    expect(await reclaim()).toBe(0);
    expect(await store.redis.dbSize()).toBe(0);
  });
});
