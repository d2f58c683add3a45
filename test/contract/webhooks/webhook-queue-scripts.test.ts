/** The queue scripts, called one at a time: endpoints with something to send are found, resumed or drained. */
import { beforeEach, describe, expect, test } from "bun:test";
import { run, script } from "#core/platform/redis/client.ts";
import { FAILING_FROM } from "#core/platform/redis/keys.ts";
import drainSource from "#core/webhooks/store/deliveries/drain.lua" with { type: "text" };
import lookSource from "#core/webhooks/store/deliveries/look.lua" with { type: "text" };
import resumeSource from "#core/webhooks/store/deliveries/resume.lua" with { type: "text" };
import { scoresOf } from "#test/support/data/scores-of.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const NOW_MS = 1_700_000_000_000;

const store = forAll(openTestRedis);
beforeEach(() => store.redis.flushAll());

type Scores = Readonly<Record<string, number>>;

async function add(key: string, scores: Scores): Promise<void> {
  const members = Object.entries(scores).map(([value, score]) => ({ value, score }));
  await store.redis.zAdd(key, members);
}

describe("look.lua", () => {
  interface Limits {
    readonly nowMs?: number;
    readonly most?: number;
    readonly failing?: number;
    readonly retries?: boolean;
    /** Leases and pauses that have ended. */
    readonly ended?: number;
  }

  interface Seen {
    readonly firsts: readonly string[];
    readonly retries: readonly string[];
    readonly ended: readonly string[];
    readonly resumed: readonly string[];
    readonly nextPauseEnd: string;
  }

  async function look(limits: Limits = {}): Promise<Seen> {
    const { nowMs = NOW_MS, most = 10, failing = 10, retries = true, ended = 10 } = limits;
    const reply = await run<[string[], string[], string[], string[], string]>(
      store.redis,
      script(lookSource),
      ["firstRing", "retryRing", "leases", "pauses"],
      [nowMs, most, failing, FAILING_FROM, retries ? 1 : 0, ended].map(String),
    );
    const [firsts, due, leases, resumed, nextPauseEnd] = reply;
    return { firsts, retries: due, ended: leases, resumed, nextPauseEnd };
  }

  const rings = async () => {
    await add("firstRing", { a: 1, b: 2, x: FAILING_FROM, y: FAILING_FROM + 1 });
    const due = {
      c: NOW_MS,
      d: NOW_MS + 1,
      z: FAILING_FROM + NOW_MS,
      w: FAILING_FROM + NOW_MS + 1,
    };
    await add("retryRing", due);
  };

  test("finds nothing if nothing waits", async () => {
    const nothing = { firsts: [], retries: [], ended: [], resumed: [], nextPauseEnd: "" };
    expect(await look()).toEqual(nothing);
  });

  test("names the endpoints with first attempts in turn, those with due retries, and failing ones last", async () => {
    await rings();
    expect(await look()).toMatchObject({ firsts: ["a", "b", "x", "y"], retries: ["c", "z"] });
    expect((await look({ nowMs: NOW_MS - 1 })).retries).toEqual([]);
    expect((await look({ nowMs: NOW_MS + 1 })).retries).toEqual(["c", "d", "z", "w"]);
    expect(await look({ retries: false })).toMatchObject({
      firsts: ["a", "b", "x", "y"],
      retries: [],
    });
  });

  test.each([
    [1, 2, ["a", "x", "y"]],
    [2, 1, ["a", "b", "x"]],
    [2, 0, ["a", "b"]],
    [0, 1, ["x"]],
  ])("of each ring at most %d healthy and %d failing ones", async (most, failing, expected) => {
    await rings();
    expect((await look({ most, failing })).firsts).toEqual(expected);
  });

  test("names the leases that have ended by the clock of Redis, earliest first", async () => {
    const [seconds, micros] = await store.redis.sendCommand<[string, string]>(["TIME"]);
    const clockMs = Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
    await add("leases", { b: clockMs, a: clockMs - 1, c: clockMs + 3_600_000 });
    expect((await look()).ended).toEqual(["a", "b"]);
    expect((await look({ ended: 1 })).ended).toEqual(["a"]);
  });

  test("names the endpoints whose pause is over, and when the next pause ends", async () => {
    await add("pauses", { a: NOW_MS, b: NOW_MS + 1 });
    const nextPauseEnd = String(NOW_MS);
    expect(await look({ nowMs: NOW_MS - 1 })).toMatchObject({ resumed: [], nextPauseEnd });
    expect(await look()).toMatchObject({ resumed: ["a"], nextPauseEnd });
    expect((await look({ nowMs: NOW_MS + 1 })).resumed).toEqual(["a", "b"]);
    expect((await look({ nowMs: NOW_MS + 1, ended: 1 })).resumed).toEqual(["a"]);
  });
});

describe("resume.lua", () => {
  /** @returns how many */
  function resume(...endpoints: readonly string[]): Promise<number> {
    const keys = ["firstRing", "retryRing", "pauses", "failing", "turns"];
    keys.push(...endpoints.flatMap((id) => [`queue:${id}`, `retries:${id}`]));
    const limits = [NOW_MS, FAILING_FROM].map(String);
    return run<number>(store.redis, script(resumeSource), keys, [...limits, ...endpoints]);
  }

  test("ends the pauses that are over, to the millisecond, and no others", async () => {
    await add("pauses", { a: NOW_MS, b: NOW_MS + 1 });
    expect(await resume()).toBe(0);
    expect(await resume("a", "b", "unknown")).toBe(1);
    expect(await scoresOf(store.redis, "pauses")).toEqual({ b: NOW_MS + 1 });
    expect(await resume("a", "b")).toBe(0);
    await add("pauses", { a: 1, b: 2, c: 3 });
    expect(await resume("a", "b", "c")).toBe(3);
    expect(await store.redis.dbSize()).toBe(0);
  });

  test("gives an endpoint with first attempts the next turn, a failing one behind all healthy ones", async () => {
    await store.redis.set("turns", 7);
    await add("pauses", { a: 1, b: 2, c: 3, d: 4 });
    await add("failing", { b: 5 });
    for (const id of ["a", "b", "d"]) await store.redis.rPush(`queue:${id}`, "left");
    await add("firstRing", { d: 3 });
    expect(await resume("a", "b", "c", "d")).toBe(4);
    expect(await scoresOf(store.redis, "firstRing")).toEqual({ d: 3, a: 8, b: FAILING_FROM + 9 });
    expect(await scoresOf(store.redis, "retryRing")).toEqual({});
  });

  test("places an endpoint with retries by the earliest one", async () => {
    await add("pauses", { a: 1, b: 2, c: NOW_MS + 1 });
    await add("failing", { b: 5 });
    for (const id of ["a", "b", "c"]) await add(`retries:${id}`, { later: 90, first: 60 });
    await add("retryRing", { a: 10 });
    expect(await resume("a", "b", "c")).toBe(2);
    expect(await scoresOf(store.redis, "retryRing")).toEqual({ a: 60, b: FAILING_FROM + 60 });
    expect(await scoresOf(store.redis, "firstRing")).toEqual({});
  });
});

describe("drain.lua", () => {
  /** @returns how many have failed */
  function drain(firsts: readonly string[], retries: readonly string[]): Promise<number> {
    const ids = [...firsts, ...retries];
    const keys = [
      "firstRing",
      "retryRing",
      "ledger",
      "queue",
      "retries",
      "log",
      "failures",
      ...ids,
    ];
    const args = ["ep", "switched off", String(firsts.length), ...ids];
    return run<number>(store.redis, script(drainSource), keys, args);
  }

  /** All of these wait, and the endpoint stands in the rings. */
  async function wait(firsts: readonly string[], retries: readonly string[]): Promise<void> {
    for (const [at, id] of [...firsts, ...retries].entries()) {
      const state = firsts.includes(id) ? { s: "queued" } : { s: "waiting", d: "60" };
      await store.redis.hSet(id, { i: "frozen", ...state });
      await add("log", { [id]: 100 + at });
    }
    await store.redis.pExpire("log", 50_000);
    if (firsts.length > 0) {
      await store.redis.rPush("queue", [...firsts]);
      await add("firstRing", { ep: 1 });
    }
    if (retries.length > 0) {
      await add("retries", Object.fromEntries(retries.map((id) => [id, 60])));
      await add("retryRing", { ep: 60 });
    }
  }

  const failed = { i: "frozen", s: "failed", d: "", r: "switched off" };

  test("fails what waits, which can be replayed as long as the log lives", async () => {
    await wait(["d1", "d2"], ["d3", "d4"]);
    expect(await drain(["d1", "d2"], ["d3", "d4"])).toBe(4);
    for (const id of ["d1", "d2", "d3", "d4"])
      expect(await store.redis.hGetAll(id)).toEqual(failed);
    expect(await scoresOf(store.redis, "failures")).toEqual({ d1: 100, d2: 101, d3: 102, d4: 103 });
    expect(await store.redis.pTTL("failures")).toBeWithin(1, 50_001);
    expect(await store.redis.hGetAll("ledger")).toEqual({ "webhook:failed": "4" });
    expect(await store.redis.exists(["queue", "retries", "firstRing", "retryRing"])).toBe(0);
  });

  test("fails a single one of either kind", async () => {
    await wait(["d1"], ["d2"]);
    expect(await drain(["d1"], [])).toBe(1);
    expect(await store.redis.exists(["queue", "firstRing"])).toBe(0);
    expect(await store.redis.hGetAll("ledger")).toEqual({ "webhook:failed": "1" });
    expect(await drain([], ["d2"])).toBe(1);
    expect(await store.redis.exists(["retries", "retryRing"])).toBe(0);
    expect(await scoresOf(store.redis, "failures")).toEqual({ d1: 100, d2: 101 });
  });

  test("leaves what is not named waiting, and its endpoint in the rings", async () => {
    await wait(["d1", "d2", "d3", "d4"], ["d5", "d6"]);
    expect(await drain(["d1", "d2", "d3"], ["d5"])).toBe(4);
    expect(await store.redis.lRange("queue", 0, -1)).toEqual(["d4"]);
    expect(await store.redis.zRange("retries", 0, -1)).toEqual(["d6"]);
    expect(await store.redis.hmGet("d4", ["s", "r"])).toEqual(["queued", null]);
    expect(await store.redis.hGet("d6", "s")).toBe("waiting");
    expect([
      await scoresOf(store.redis, "firstRing"),
      await scoresOf(store.redis, "retryRing"),
    ]).toEqual([{ ep: 1 }, { ep: 60 }]);
  });

  test("changes nothing that has left its queue since it was read", async () => {
    await wait(["d1", "d2"], ["d3"]);
    // The first of those that were named, and a retry, are under way.
    await store.redis.hSet("d0", { i: "frozen", s: "queued" });
    await store.redis.hSet("d9", { i: "frozen", s: "waiting" });
    expect(await drain(["d0", "d1"], ["d9"])).toBe(1);
    expect(await store.redis.hGetAll("d0")).toEqual({ i: "frozen", s: "queued" });
    expect(await store.redis.hGetAll("d9")).toEqual({ i: "frozen", s: "waiting" });
    expect(await store.redis.lRange("queue", 0, -1)).toEqual(["d2"]);
    // Another one stands at the head now.
    expect(await drain(["d3"], [])).toBe(0);
    expect(await store.redis.hGet("d2", "s")).toBe("queued");
    expect(await store.redis.hGetAll("ledger")).toEqual({ "webhook:failed": "1" });
  });

  test("leaves nothing behind if it finds nothing", async () => {
    expect(await drain([], [])).toBe(0);
    await store.redis.hSet("d9", "s", "waiting");
    expect(await drain([], ["d9"])).toBe(0);
    expect(await store.redis.keys("*")).toEqual(["d9"]);
  });

  test("counts an expired delivery as failed, without recreating it", async () => {
    await wait(["d1"], ["d2"]);
    await store.redis.del(["d1", "d2"]);
    expect(await drain(["d1"], ["d2"])).toBe(2);
    expect(await store.redis.hGetAll("ledger")).toEqual({ "webhook:failed": "2" });
    expect(await store.redis.exists(["d1", "d2", "failures", "queue", "retries"])).toBe(0);
  });

  test("does not list one for replay that the log has lost", async () => {
    await wait(["d1"], []);
    await store.redis.del("log");
    expect(await drain(["d1"], [])).toBe(1);
    expect(await store.redis.hGetAll("d1")).toEqual(failed);
    expect(await store.redis.exists("failures")).toBe(0);
  });
});
