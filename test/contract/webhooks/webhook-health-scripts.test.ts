/** The endpoint health scripts, called one at a time: alerts are raised, and failing endpoints cleared. */
import { beforeEach, describe, expect, test } from "bun:test";
import { run, script } from "#core/platform/redis/client.ts";
import { FAILING_FROM } from "#core/platform/redis/keys.ts";
import alertSource from "#core/webhooks/store/alert.lua" with { type: "text" };
import clearFailingSource from "#core/webhooks/store/clear-failing.lua" with { type: "text" };
import { forAll } from "#test/support/for-all.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const NOW_MS = 1_700_000_000_000;

const store = forAll(openTestRedis);
beforeEach(() => store.redis.flushAll());

/** Endpoints that fail since these moments. */
async function fail(since: Readonly<Record<string, number>>): Promise<void> {
  for (const [value, score] of Object.entries(since)) {
    await store.redis.zAdd("failing", { value, score });
    await store.redis.hSet("lastFailures", value, `attempt of ${value}`);
  }
}

const failing = () => store.redis.zRange("failing", 0, -1);
const alerts = async () =>
  ((await store.redis.xRange("alerts", "-", "+")) ?? []).map(({ message }) => message);

describe("alert.lua", () => {
  type Verdict = readonly [endpoint: string, sinceMs: number, kind: string];

  /** @returns how many alerts were raised */
  function raise(...verdicts: readonly Verdict[]): Promise<number> {
    const keys = ["failing", "warned", "alerts", "alerted", "lastFailures"];
    const args = [NOW_MS, ...verdicts.flat()].map(String);
    return run<number>(store.redis, script(alertSource), keys, args);
  }

  const alert = (endpointId: string, kind: string, sinceMs: number) => {
    return { endpointId, kind, sinceMs: String(sinceMs), atMs: String(NOW_MS) };
  };

  test("warns of each endpoint once, and keeps it failing", async () => {
    await fail({ a: 5, b: 6 });
    expect(await raise(["a", 5, "warning"])).toBe(1);
    expect(await raise(["a", 5, "warning"], ["b", 6, "warning"], ["b", 6, "warning"])).toBe(1);
    expect(await alerts()).toEqual([alert("a", "warning", 5), alert("b", "warning", 6)]);
    expect(await store.redis.hGetAll("alerted")).toEqual({ a: "5", b: "6" });
    expect((await store.redis.sMembers("warned")).toSorted()).toEqual(["a", "b"]);
    expect(await failing()).toEqual(["a", "b"]);
  });

  test("alerts once more when an endpoint is disabled, which ends its failing", async () => {
    await fail({ a: 5, b: 6 });
    await raise(["a", 5, "warning"]);
    const verdicts = [
      ...[["b", 6, "warning"] as const, ["b", 6, "disabled"] as const],
      ...[["a", 5, "disabled"] as const, ["a", 5, "disabled"] as const],
    ];
    expect(await raise(...verdicts)).toBe(3);
    expect((await alerts()).slice(1)).toEqual([
      ...[alert("b", "warning", 6), alert("b", "disabled", 6), alert("a", "disabled", 5)],
    ]);
    expect(await store.redis.hGetAll("alerted")).toEqual({ a: "5", b: "6" });
    expect(await store.redis.exists(["failing", "warned"])).toBe(0);
    expect(await store.redis.hLen("lastFailures")).toBe(2);
    expect(await raise(...verdicts)).toBe(0);
  });

  test("clears one already disabled or deleted without an alert, and keeps nothing of a deleted one", async () => {
    await fail({ a: 5, b: 6, c: 7, d: 8 });
    await store.redis.sAdd("warned", ["a", "b", "d"]);
    expect(await raise(["a", 5, "forget"], ["b", 6, "gone"], ["c", 7, "gone"])).toBe(0);
    expect(await failing()).toEqual(["d"]);
    expect(await store.redis.sMembers("warned")).toEqual(["d"]);
    expect(Object.keys(await store.redis.hGetAll("lastFailures")).toSorted()).toEqual(["a", "d"]);
    expect(await store.redis.exists(["alerts", "alerted"])).toBe(0);
    expect(await raise(["d", 8, "gone"])).toBe(0);
    expect(await store.redis.hKeys("lastFailures")).toEqual(["a"]);
    expect(await store.redis.exists(["failing", "warned"])).toBe(0);
  });

  test("leaves one alone that has succeeded or started failing again", async () => {
    await fail({ a: 5 });
    expect(await raise(["a", 4, "disabled"], ["healthy", 4, "disabled"])).toBe(0);
    expect(await raise(["a", 4, "gone"], ["healthy", 0, "warning"])).toBe(0);
    expect(await failing()).toEqual(["a"]);
    expect(await store.redis.hKeys("lastFailures")).toEqual(["a"]);
    expect(await store.redis.exists(["alerts", "alerted", "warned"])).toBe(0);
  });

  test.each([
    ["of another kind", ["a", "5", "restored"]],
    ["without a time", ["a", "", "warning"]],
    ["that is cut off", ["a", "5"]],
  ])("rejects an alert %s, with those before it", async (_, malformed) => {
    await fail({ a: 5, b: 6 });
    const keys = ["failing", "warned", "alerts", "alerted", "lastFailures"];
    const args = [String(NOW_MS), "b", "6", "disabled", ...malformed];
    await expect(run(store.redis, script(alertSource), keys, args)).rejects.toThrow("malformed");
    expect(await failing()).toEqual(["a", "b"]);
    expect(await store.redis.exists("alerts")).toBe(0);
  });
});

describe("clear-failing.lua", () => {
  const KEYS = [
    ...["failing", "warned", "firstRing", "retryRing", "lastFailures", "alerted", "alerts"],
    ...["pauses", "concurrencies", "rates"],
  ];

  /** @returns 1 when it was failing */
  const clear = (endpoint: string, succeededAtMs: number | null) =>
    run<number>(store.redis, script(clearFailingSource), KEYS, [
      ...[endpoint, String(FAILING_FROM)],
      succeededAtMs === null ? "" : String(succeededAtMs),
    ]);

  beforeEach(async () => {
    await fail({ a: 5, b: 6 });
    for (const id of ["a", "b"]) {
      await store.redis.sAdd("warned", id);
      await store.redis.hSet("alerted", id, "5");
      for (const key of ["concurrencies", "rates"]) await store.redis.hSet(key, id, "before");
      await store.redis.zAdd("pauses", { value: id, score: NOW_MS });
    }
  });

  const pauseOf = (id: string) => store.redis.zScore("pauses", id);

  test.each([
    ["a success", NOW_MS],
    ["enabling or disabling", null],
  ])("%s clears its endpoint alone", async (_, succeededAtMs) => {
    expect(await clear("a", succeededAtMs)).toBe(1);
    expect(await failing()).toEqual(["b"]);
    expect(await store.redis.sMembers("warned")).toEqual(["b"]);
    expect(await store.redis.hKeys("lastFailures")).toEqual(["b"]);
    expect(await clear("a", succeededAtMs)).toBe(0);
    expect(await store.redis.exists(["firstRing", "retryRing"])).toBe(0);
  });

  test("a success after an alert raises one recovery alert, and keeps pause and concurrency", async () => {
    for (let times = 0; times < 2; times += 1) await clear("a", NOW_MS);
    expect(await alerts()).toEqual([
      { endpointId: "a", kind: "recovered", sinceMs: "5", atMs: String(NOW_MS) },
    ]);
    expect(await store.redis.hGetAll("alerted")).toEqual({ b: "5" });
    expect(await pauseOf("a")).toBe(NOW_MS);
    for (const key of ["concurrencies", "rates"]) expect(await store.redis.hLen(key)).toBe(2);
  });

  test("enabling or disabling ends the pause and resets the concurrency, without a recovery alert", async () => {
    await clear("a", null);
    expect([await pauseOf("a"), await pauseOf("b")]).toEqual([0, NOW_MS]);
    for (const key of ["concurrencies", "rates"])
      expect(await store.redis.hKeys(key)).toEqual(["b"]);
    expect([await alerts(), await store.redis.hLen("alerted")]).toEqual([[], 2]);
    await store.redis.del("pauses");
    await clear("b", null);
    expect(await store.redis.exists("pauses")).toBe(0);
  });

  test("returns an endpoint to its place among the healthy ones", async () => {
    const scores = { a: FAILING_FROM, b: FAILING_FROM + 9, healthy: 7 };
    for (const [value, score] of Object.entries(scores)) {
      for (const ring of ["firstRing", "retryRing"]) await store.redis.zAdd(ring, { value, score });
    }
    for (const id of ["a", "b", "healthy"]) await clear(id, NOW_MS);
    for (const ring of ["firstRing", "retryRing"]) {
      expect(await store.redis.zRangeWithScores(ring, 0, -1)).toEqual([
        { value: "a", score: 0 },
        { value: "healthy", score: 7 },
        { value: "b", score: 9 },
      ]);
    }
  });
});
