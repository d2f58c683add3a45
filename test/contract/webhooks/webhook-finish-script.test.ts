/** finish.lua, one call at a time: the delivery, and its endpoint's health, concurrency and place in the rings. */
import { beforeEach, describe, expect, test } from "bun:test";
import { run } from "#core/platform/redis/client.ts";
import { FAILING_FROM } from "#core/platform/redis/keys.ts";
import { packList } from "#core/platform/redis/packed-list.ts";
import { scriptOfParts } from "#core/platform/redis/script-parts.ts";
import finishSource from "#core/webhooks/store/deliveries/finish.lua" with { type: "text" };
import endpointConcurrency from "#core/webhooks/store/parts/endpoint-concurrency.lua" with {
  type: "text",
};
import endpointHealth from "#core/webhooks/store/parts/endpoint-health.lua" with { type: "text" };
import settleDelivery from "#core/webhooks/store/parts/settle-delivery.lua" with { type: "text" };
import { scoresOf } from "#test/support/data/scores-of.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const finishScript = scriptOfParts(finishSource, {
  "endpoint-health": endpointHealth,
  "endpoint-concurrency": endpointConcurrency,
  "settle-delivery": settleDelivery,
});

const NOW_MS = 1_700_000_000_000;
const START_CONCURRENCY = 4;
const CONCURRENCY_LIFE_MS = 600_000;
const AWAY_MS = 60_000;

const OWN_KEYS = [
  ...["firstRing", "retryRing", "leases", "flight", "turns", "failing", "warned", "ledger"],
  ...["attempts", "attemptCounts", "lastFailures", "alerts", "alerted", "concurrencies", "pauses"],
];

const store = forAll(openTestRedis);
beforeEach(() => store.redis.flushAll());

interface Result {
  readonly id: string;
  readonly state: "delivered" | "waiting" | "failed";
  readonly made?: number;
  readonly dueMs?: number;
  readonly reason?: string;
  /** False: there was no attempt. */
  readonly isSent?: boolean;
}

interface Of {
  readonly endpoint: string;
  readonly results?: readonly Result[];
  /** What was under way, if it was not the results alone. */
  readonly underWay?: number;
  readonly most?: number;
  readonly good?: number;
  readonly fall?: { readonly factor: number; readonly atMs: number };
  readonly pausedUntilMs?: number;
}

const delivered: Result = { id: "good", state: "delivered" };
const failed: Result = { id: "bad", state: "failed", reason: "gave up" };
const unsent: Result = { id: "unsent", state: "waiting", dueMs: 5, isSent: false };

/** Records results of deliveries that are under way. */
async function finish(endpoints: readonly Of[], nowMs = NOW_MS): Promise<void> {
  const keys = [...OWN_KEYS];
  const list: string[] = [];
  for (const one of endpoints) {
    const { endpoint: id, results = [unsent], underWay = results.length } = one;
    const own = ["queue", "retries", "log", "failures", "hour"].map((key) => `${key}:${id}`);
    keys.push(...own, ...results.map((result) => result.id));
    const { most = 256, good = 0, fall, pausedUntilMs = "" } = one;
    list.push(id, `${results.length}`, `${most}`, `${good}`);
    list.push(`${fall?.factor ?? ""}`, `${fall?.atMs ?? ""}`, `${pausedUntilMs}`);
    for (const {
      id: delivery,
      state,
      made = 1,
      dueMs = "",
      reason = "",
      isSent = true,
    } of results) {
      list.push(delivery, "1", state, `${made}`, `[${made}]`, `${dueMs}`, reason);
      list.push(...(isSent ? ["<100", `attempt of ${delivery}`] : ["", ""]));
      await store.redis.zAdd("leases", { value: `${id} ${delivery} 1`, score: 1 });
    }
    await store.redis.hSet("flight", id, `${underWay}`);
  }
  const limits = [nowMs, 3_600, 100, FAILING_FROM, START_CONCURRENCY, CONCURRENCY_LIFE_MS, AWAY_MS];
  await run(store.redis, finishScript, keys, [...limits.map(String), packList(list)]);
}

describe("a delivery", () => {
  /** As it stands before its first attempt. */
  const queue = (id: string) => store.redis.hSet(id, { i: "frozen", s: "queued" });

  test("delivered by its first attempt keeps its attempts and no due time", async () => {
    await queue("d1");
    await finish([{ endpoint: "a", results: [{ id: "d1", state: "delivered" }] }]);
    expect(await store.redis.hGetAll("d1")).toEqual({
      i: "frozen",
      s: "delivered",
      n: "1",
      a: "[1]",
    });
    expect(await store.redis.hGetAll("ledger")).toEqual({ "webhook:delivered": "1" });
    expect(await store.redis.exists(["retries:a", "failures:a"])).toBe(0);
  });

  test("that waits is among the retries of its endpoint, by due time", async () => {
    await queue("d1");
    await store.redis.zAdd("log:a", { value: "d1", score: 100 });
    await finish([{ endpoint: "a", results: [{ id: "d1", state: "waiting", dueMs: 700 }] }]);
    expect(await store.redis.hmGet("d1", ["s", "d", "r"])).toEqual(["waiting", "700", ""]);
    expect(await store.redis.zRangeWithScores("retries:a", 0, -1)).toEqual([
      { value: "d1", score: 700 },
    ]);
    expect(await store.redis.exists(["failures:a", "ledger"])).toBe(0);
  });

  test("that has failed is listed by creation time, for as long as the log lives", async () => {
    for (const id of ["d1", "d2"]) await queue(id);
    await store.redis.zAdd("log:a", { value: "d1", score: 100 });
    await store.redis.pExpire("log:a", 50_000);
    const results = ["d1", "d2"].map((id) => ({ ...failed, id }));
    await finish([{ endpoint: "a", results }]);
    expect(await store.redis.hmGet("d1", ["s", "d", "r"])).toEqual(["failed", "", "gave up"]);
    // The log has lost the other one.
    expect(await store.redis.zRangeWithScores("failures:a", 0, -1)).toEqual([
      { value: "d1", score: 100 },
    ]);
    expect(await store.redis.pTTL("failures:a")).toBeWithin(1, 50_001);
    expect(await store.redis.hGetAll("ledger")).toEqual({ "webhook:failed": "2" });
    expect(await store.redis.exists("retries:a")).toBe(0);
  });

  test("delivered by a retry has no due time any more", async () => {
    await store.redis.hSet("d1", { i: "frozen", s: "waiting", n: "1", a: "[1]", d: "700", r: "" });
    await finish([{ endpoint: "a", results: [{ id: "d1", state: "delivered", made: 2 }] }]);
    expect(await store.redis.hmGet("d1", ["s", "n", "d"])).toEqual(["delivered", "2", ""]);
  });

  test("postponed by an internal error has no due time once it is delivered", async () => {
    await queue("d1");
    const postponed = { ...unsent, id: "d1", made: 0, dueMs: 700 };
    await finish([{ endpoint: "a", results: [postponed] }]);
    await finish([{ endpoint: "a", results: [{ id: "d1", state: "delivered" }] }]);
    expect(await store.redis.hmGet("d1", ["s", "n", "d"])).toEqual(["delivered", "1", ""]);
  });

  test("that has expired is not recreated, and counts as failed if it would wait", async () => {
    const gone: Result[] = [
      ...[delivered, { ...failed, made: 2 }],
      { id: "again", state: "waiting", dueMs: 700 },
    ];
    await finish([{ endpoint: "a", results: gone }]);
    expect(await store.redis.exists(["good", "bad", "again", "retries:a", "failures:a"])).toBe(0);
    expect(await store.redis.hGetAll("ledger")).toEqual({
      "webhook:delivered": "1",
      "webhook:failed": "2",
    });
  });
});

describe("the health", () => {
  const failing = () => store.redis.zRangeWithScores("failing", 0, -1);
  const alerts = async () =>
    ((await store.redis.xRange("alerts", "-", "+")) ?? []).map(({ message }) => message);

  test("starts failing with the first failure, and keeps the last one", async () => {
    const ofBoth = (result: Result) =>
      ["a", "b"].map((endpoint) => ({ endpoint, results: [{ ...result, id: `${endpoint}1` }] }));
    await finish([{ endpoint: "c", results: [delivered] }]);
    await finish([{ endpoint: "c" }, ...ofBoth(failed)]);
    const since = ["a", "b"].map((value) => ({ value, score: NOW_MS }));
    expect(await failing()).toEqual(since);
    const again = ["a", "b"].map((id) => ({ ...failed, id: `${id}2` }));
    await finish([{ endpoint: "a", results: again }], NOW_MS + 1);
    expect(await failing()).toEqual(since);
    expect(await store.redis.hGetAll("lastFailures")).toEqual({
      a: "attempt of b2",
      b: "attempt of b1",
    });
  });

  test("a success ends it, and leaves nothing of it", async () => {
    for (const id of ["a", "b"]) {
      await store.redis.zAdd("failing", { value: id, score: 5 });
      await store.redis.sAdd("warned", id);
      await store.redis.hSet("lastFailures", id, "before");
    }
    await finish([{ endpoint: "a", results: [failed, delivered] }, { endpoint: "b" }]);
    expect(await failing()).toEqual([{ value: "b", score: 5 }]);
    expect(await store.redis.sMembers("warned")).toEqual(["b"]);
    expect(await store.redis.hGetAll("lastFailures")).toEqual({ b: "before" });
    expect(await alerts()).toEqual([]);
  });

  test("a failure after a success starts it again", async () => {
    await store.redis.zAdd("failing", { value: "a", score: 5 });
    await store.redis.sAdd("warned", "a");
    await finish([{ endpoint: "a", results: [delivered, failed] }]);
    expect(await failing()).toEqual([{ value: "a", score: NOW_MS }]);
    expect(await store.redis.exists("warned")).toBe(0);
    expect(await store.redis.hGetAll("lastFailures")).toEqual({ a: "attempt of bad" });
  });

  test("the first success after an alert raises another one, once", async () => {
    await store.redis.hSet("alerted", { a: "5", c: "7", d: "9" });
    const working = (endpoint: string) => ({ endpoint, results: [delivered] });
    await finish([working("a")]);
    expect(await store.redis.hGetAll("alerted")).toEqual({ c: "7", d: "9" });
    const all = [...["a", "b", "c"].map(working), { endpoint: "d", results: [failed] }];
    for (let times = 0; times < 2; times += 1) await finish(all);
    const recovered = { kind: "recovered", atMs: String(NOW_MS) };
    expect(await alerts()).toEqual([
      { endpointId: "a", sinceMs: "5", ...recovered },
      { endpointId: "c", sinceMs: "7", ...recovered },
    ]);
    expect(await store.redis.hGetAll("alerted")).toEqual({ d: "9" });
  });
});

describe("the concurrency", () => {
  const USED_MS = NOW_MS - 1_000;

  const concurrency = async (endpoint = "a") =>
    (await store.redis.hGet("concurrencies", endpoint)) ?? "";
  /** Where it stands, where it last fell and when, and when it was last in use. */
  const keep = (text: string, endpoint = "a") => store.redis.hSet("concurrencies", endpoint, text);

  test("begins at 4 and grows by 2 with each success, up to its maximum", async () => {
    await finish([{ endpoint: "a", most: 9, good: 1, underWay: 4 }]);
    expect(await concurrency()).toBe(`6.000 9.000 0 ${NOW_MS}`);
    await finish([{ endpoint: "a", most: 9, good: 2, underWay: 6 }], NOW_MS + 1);
    expect(await concurrency()).toBe(`9.000 9.000 0 ${NOW_MS + 1}`);
  });

  test("grows while at least half of it is in use", async () => {
    await finish([{ endpoint: "a", good: 1, underWay: 1 }]);
    expect(await concurrency()).toBe("");
    await finish([{ endpoint: "a", good: 1, underWay: 2 }]);
    expect(await concurrency()).toStartWith("6.000 ");
    await finish([{ endpoint: "a", good: 1, underWay: 2 }], NOW_MS + 1);
    expect(await concurrency()).toEndWith(` ${NOW_MS}`);
    await finish([{ endpoint: "a", good: 1, underWay: 3 }], NOW_MS + 1);
    expect(await concurrency()).toStartWith("8.000 ");
  });

  test("is not in use if nothing succeeds", async () => {
    await keep(`6.000 256.000 0 ${USED_MS}`);
    await finish([{ endpoint: "a", results: [failed], underWay: 6 }]);
    expect(await concurrency()).toEndWith(` ${USED_MS}`);
  });

  test("falls once for all that was sent before, and then grows by one for each round of successes", async () => {
    await keep(`16.000 256.000 0 ${USED_MS}`);
    await finish([{ endpoint: "a", fall: { factor: 0.5, atMs: USED_MS } }]);
    const fallen = `8.000 8.000 ${NOW_MS} ${NOW_MS}`;
    expect(await concurrency()).toBe(fallen);
    await finish([{ endpoint: "a", fall: { factor: 0.5, atMs: NOW_MS } }], NOW_MS + 9);
    expect(await concurrency()).toBe(fallen);
    await finish([{ endpoint: "a", good: 4, underWay: 8 }], NOW_MS + 9);
    expect(await concurrency()).toBe(`8.500 8.000 ${NOW_MS} ${NOW_MS + 9}`);
    await finish([{ endpoint: "a", fall: { factor: 0.8, atMs: NOW_MS + 1 } }], NOW_MS + 10);
    expect(await concurrency()).toBe(`6.800 6.800 ${NOW_MS + 10} ${NOW_MS + 10}`);
  });

  test.each([
    [256, "4.000 4.000"],
    [2, "2.000 2.000"],
  ])("never falls below 4, or below a lower maximum: %d", async (most, fallen) => {
    await finish([{ endpoint: "a", most, fall: { factor: 0.1, atMs: 1 } }]);
    expect(await concurrency()).toBe(`${fallen} ${NOW_MS} ${NOW_MS}`);
  });

  test("obeys a lowered maximum, and grows back by 2 up to where it fell", async () => {
    await keep(`20.000 20.000 5 ${USED_MS}`);
    await finish([{ endpoint: "a", most: 8, good: 1, underWay: 8 }]);
    expect(await concurrency()).toBe(`8.000 20.000 5 ${NOW_MS}`);
    await finish([{ endpoint: "a", good: 5, underWay: 8 }]);
    expect(await concurrency()).toBe(`18.000 20.000 5 ${NOW_MS}`);
    await finish([{ endpoint: "a", good: 5, underWay: 18 }]);
    expect(await concurrency()).toBe(`20.000 20.000 5 ${NOW_MS}`);
  });

  test.each([
    [1, 2, "6.000"],
    [8, 8, "10.000"],
  ])("grows by 2 after its maximum was raised from %d", async (before, underWay, grown) => {
    await finish([{ endpoint: "a", most: before, good: 9, underWay: before }]);
    expect(await concurrency()).toBe(`${before}.000 ${before}.000 0 ${NOW_MS}`);
    await finish([{ endpoint: "a", good: 1, underWay }]);
    expect(await concurrency()).toBe(`${grown} 256.000 0 ${NOW_MS}`);
  });

  test.each([
    [CONCURRENCY_LIFE_MS, "10.100 10.000"],
    [CONCURRENCY_LIFE_MS + 1, "6.000 256.000"],
  ])("starts over after more than ten minutes without use: %d ms", async (restMs, expected) => {
    await keep(`10.000 10.000 5 ${NOW_MS - restMs}`);
    await finish([{ endpoint: "a", good: 1, underWay: 5 }]);
    expect(await concurrency()).toStartWith(expected);
  });

  test.each([
    [AWAY_MS - 1, "10.100 10.000"],
    [AWAY_MS, "6.000 256.000"],
  ])("starts over with a success after a minute without one: %d ms", async (failsMs, expected) => {
    await keep(`10.000 10.000 5 ${USED_MS}`);
    await store.redis.zAdd("failing", { value: "a", score: NOW_MS - failsMs });
    await finish([{ endpoint: "a", results: [delivered], good: 1, underWay: 5 }]);
    expect(await concurrency()).toStartWith(expected);
  });

  test("goes on falling while its endpoint fails", async () => {
    await keep(`10.000 10.000 5 ${USED_MS}`);
    await store.redis.zAdd("failing", { value: "a", score: 5 });
    await finish([{ endpoint: "a", results: [failed], fall: { factor: 0.5, atMs: USED_MS } }]);
    expect(await concurrency()).toStartWith("5.000 5.000 ");
  });

  test("is separate for each endpoint", async () => {
    await keep(`10.000 10.000 5 ${USED_MS}`, "c");
    await finish([
      { endpoint: "a", good: 1, underWay: 4 },
      { endpoint: "b", underWay: 4 },
      { endpoint: "c", fall: { factor: 0.5, atMs: USED_MS } },
    ]);
    expect(await store.redis.hGetAll("concurrencies")).toEqual({
      a: `6.000 256.000 0 ${NOW_MS}`,
      c: `5.000 5.000 ${NOW_MS} ${NOW_MS}`,
    });
  });
});

describe("an endpoint", () => {
  test("is paused until the latest moment that was asked for", async () => {
    await store.redis.zAdd("pauses", { value: "a", score: NOW_MS + 5 });
    for (const id of ["a", "b", "c"]) await store.redis.rPush(`queue:${id}`, "left");
    const until = (endpoint: string, ms: number) => ({ endpoint, pausedUntilMs: NOW_MS + ms });
    await finish([until("a", 4), until("b", 7), { endpoint: "c" }]);
    expect(await store.redis.zRangeWithScores("pauses", 0, -1)).toEqual([
      { value: "a", score: NOW_MS + 5 },
      { value: "b", score: NOW_MS + 7 },
    ]);
    expect(await scoresOf(store.redis, "firstRing")).toEqual({ c: 1 });
  });

  test("with first attempts left gets the next turn, a failing one behind all healthy ones", async () => {
    await store.redis.set("turns", 7);
    for (const id of ["a", "b"]) await store.redis.rPush(`queue:${id}`, "left");
    const results = [{ ...delivered, id: "d1" }];
    await finish([
      { endpoint: "a", results },
      { endpoint: "b", results: [failed] },
      { endpoint: "c", results },
    ]);
    expect(await scoresOf(store.redis, "firstRing")).toEqual({ a: 8, b: FAILING_FROM + 9 });
    expect(await scoresOf(store.redis, "retryRing")).toEqual({});
  });

  test("that has a turn keeps it, among the healthy or the failing ones", async () => {
    const turns = { healthy: 1, cured: FAILING_FROM + 2, fails: 3, failing: FAILING_FROM + 4 };
    for (const [value, score] of Object.entries(turns)) {
      await store.redis.rPush(`queue:${value}`, "left");
      await store.redis.zAdd("firstRing", { value, score });
    }
    for (const value of ["cured", "failing"])
      await store.redis.zAdd("failing", { value, score: 5 });
    const after = (endpoint: string, result: Result) => ({ endpoint, results: [result] });
    await finish([
      ...[after("healthy", delivered), after("cured", { ...delivered, id: "d2" })],
      ...[after("fails", failed), after("failing", { ...failed, id: "d4" })],
    ]);
    expect(await scoresOf(store.redis, "firstRing")).toEqual({
      healthy: 1,
      cured: 2,
      fails: FAILING_FROM + 3,
      failing: FAILING_FROM + 4,
    });
    expect(await store.redis.exists("turns")).toBe(0);
  });

  test("with retries is placed by the earliest one, a failing one behind all healthy ones", async () => {
    for (const id of ["a", "b"]) {
      await store.redis.zAdd(`retries:${id}`, [
        { value: "later", score: 90 },
        { value: "first", score: 60 },
      ]);
    }
    await store.redis.zAdd("retryRing", { value: "a", score: 10 });
    await store.redis.zAdd("failing", { value: "b", score: 5 });
    await finish(
      ["a", "b"].map((endpoint) => ({ endpoint, results: [{ ...failed, isSent: false }] })),
    );
    expect(await scoresOf(store.redis, "retryRing")).toEqual({ a: 60, b: FAILING_FROM + 60 });
    expect(await scoresOf(store.redis, "firstRing")).toEqual({});
  });
});
