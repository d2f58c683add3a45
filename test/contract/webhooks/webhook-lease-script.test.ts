/** lease.lua, one call at a time: how many deliveries of an endpoint begin, and how long endpoints at a limit pause. */
import { beforeEach, describe, expect, test } from "bun:test";
import { run } from "#core/platform/redis/client.ts";
import { scriptOfParts } from "#core/platform/redis/script-parts.ts";
import leaseSource from "#core/webhooks/store/deliveries/lease.lua" with { type: "text" };
import endpointCapacity from "#core/webhooks/store/parts/endpoint-capacity.lua" with {
  type: "text",
};
import { scoresOf } from "#test/support/data/scores-of.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const leaseScript = scriptOfParts(leaseSource, { "endpoint-capacity": endpointCapacity });

const store = forAll(openTestRedis);
beforeEach(() => store.redis.flushAll());

const NOW_MS = 1_000_000;
const CONCURRENCY_LIFE_MS = 1_000;
/** Concurrency that an endpoint begins with. */
const START = 6;
const PER_FAILING = 2;
const PER_SILENT = 3;

interface Terms {
  readonly silent?: boolean;
  readonly most?: number;
  readonly inAll?: number;
  /** `burst perSecond` */
  readonly rate?: string;
  readonly share?: number;
  /** First attempts that wait. */
  readonly waiting?: number;
}

interface Begun {
  readonly counts: Record<string, number>;
  /** "" = nothing was paused. */
  readonly pauseEnd: string;
}

/** One call for these endpoints, each with twenty first attempts where it is not told otherwise. */
async function begin(endpoints: Readonly<Record<string, Terms>>): Promise<Begun> {
  const ids = Object.keys(endpoints);
  const texts = Object.values(endpoints).map((terms) => {
    const { silent, most = 100, inAll = 0, rate = "0 0", share = 1_000 } = terms;
    return `${silent ? 1 : 0} ${most} ${inAll} ${rate} ${share}`;
  });
  for (const [id, { waiting = 20 }] of Object.entries(endpoints)) {
    const deliveries = Array.from({ length: waiting }, (_, n) => `${id}${n}`);
    await store.redis.del(`queue:${id}`);
    if (waiting > 0) await store.redis.rPush(`queue:${id}`, deliveries);
  }
  const fixed = ["ring", "retry-ring", "leases", "flight", "turns", "failing"];
  const keys = [...fixed, "concurrencies", "rates", "pauses", ...ids.map((id) => `queue:${id}`)];
  const limits = [PER_FAILING, PER_SILENT, START, CONCURRENCY_LIFE_MS, 1e15, 0, ids.length];
  const numbers = [NOW_MS, 60_000, 1_000, 1_000, 1_000, ...limits].map(String);
  const args = [...numbers, ...ids, ...texts];
  const [, text, pauseEnd] = await run<[string, string, string]>(
    store.redis,
    leaseScript,
    keys,
    args,
  );
  const lines = text === "" ? [] : text.split("\n");
  const owners = lines.filter((_, at) => at % 4 === 0);
  const counts = ids.map((id) => [id, owners.filter((owner) => owner === id).length]);
  return { counts: Object.fromEntries(counts), pauseEnd };
}

/** So many of one endpoint, `a`. */
const count = async (terms: Terms = {}) => (await begin({ a: terms })).counts["a"];
const pauses = () => scoresOf(store.redis, "pauses");

describe("the concurrency of an endpoint", () => {
  const keep = (concurrency: number, usedAtMs = NOW_MS) =>
    store.redis.hSet("concurrencies", "a", `${concurrency.toFixed(3)} 9.000 123 ${usedAtMs}`);

  test("is the starting one until a higher one is stored, and never above its maximum", async () => {
    expect(await count()).toBe(START);
    await store.redis.del("flight");
    await keep(START + 2.9);
    expect(await count()).toBe(START + 2);
    await store.redis.del("flight");
    expect(await count({ most: 2 })).toBe(2);
  });

  test("that was stored under a lower limit does not hold back a raised one", async () => {
    await keep(1);
    expect(await count({ most: START + 1 })).toBe(START);
  });

  test("is kept while in use, and starts over after that", async () => {
    await keep(9, NOW_MS - CONCURRENCY_LIFE_MS);
    expect(await count()).toBe(9);
    await store.redis.del("flight");
    await keep(9, NOW_MS - CONCURRENCY_LIFE_MS - 1);
    expect(await count()).toBe(START);
  });

  test("counts what is in flight, and adds what begins", async () => {
    await store.redis.hSet("flight", { a: "4", "w a": "3", other: "1" });
    const begun = await begin({ a: {}, b: { waiting: 1 }, c: { waiting: 0 } });
    expect(begun).toEqual({ counts: { a: 2, b: 1, c: 0 }, pauseEnd: "" });
    expect(await store.redis.hGetAll("flight")).toEqual({ a: "6", b: "1", "w a": "3", other: "1" });
    expect(await count()).toBe(0);
    expect(await store.redis.exists(["pauses", "rates"])).toBe(0);
  });

  test("of a failing endpoint is lower, and a silent one has a limit of its own", async () => {
    await store.redis.zAdd("failing", [
      { value: "f", score: 1 },
      { value: "s", score: 1 },
    ]);
    const { counts } = await begin({ a: {}, f: {}, s: { silent: true, most: 1 } });
    expect(counts).toEqual({ a: START, f: PER_FAILING, s: PER_SILENT });
    const flight = { a: String(START), f: String(PER_FAILING), "w s": String(PER_SILENT) };
    expect(await store.redis.hGetAll("flight")).toEqual(flight);
    await store.redis.hSet("flight", { s: "9", "w s": "2" });
    expect((await begin({ s: { silent: true } })).counts).toEqual({ s: 1 });
  });
});

describe("a limit of its own", () => {
  test("counts requests in slots and outside of them together", async () => {
    expect(await count({ inAll: 1 })).toBe(1);
    await store.redis.hSet("flight", { a: "1", "w a": "2" });
    expect(await count({ inAll: 5 })).toBe(2);
    expect(await store.redis.hGetAll("flight")).toEqual({ a: "3", "w a": "2" });
    expect(await count({ inAll: 5 })).toBe(0);
    expect((await begin({ a: { silent: true, inAll: 5 } })).counts).toEqual({ a: 0 });
    expect((await begin({ a: { silent: true, inAll: 6 } })).counts).toEqual({ a: 1 });
  });
});

describe("a pause", () => {
  test("lasts until its end, and does not begin for an endpoint at its concurrency", async () => {
    await store.redis.zAdd("pauses", { value: "a", score: NOW_MS + 1 });
    expect(await count()).toBe(0);
    await store.redis.zAdd("pauses", { value: "a", score: NOW_MS });
    expect(await begin({ a: {} })).toEqual({ counts: { a: START }, pauseEnd: "" });
    expect(await pauses()).toEqual({ a: NOW_MS });
  });
});

describe("a rate", () => {
  const rateOf = (id: string) => store.redis.hGet("rates", id);

  test("allows its burst; the endpoint then pauses until the burst has refilled", async () => {
    const rate = "4 2";
    expect(await begin({ a: { rate } })).toEqual({
      counts: { a: 4 },
      pauseEnd: String(NOW_MS + 2_000),
    });
    expect(await rateOf("a")).toBe(`0.000 ${NOW_MS}`);
    expect(await pauses()).toEqual({ a: NOW_MS + 2_000 });
  });

  test("refills with time, up to its burst", async () => {
    await store.redis.hSet("rates", "a", `1.500 ${NOW_MS - 1_000}`);
    expect(await begin({ a: { rate: "5 2" } })).toEqual({
      counts: { a: 3 },
      pauseEnd: String(NOW_MS + 2_250),
    });
    expect(await rateOf("a")).toBe(`0.500 ${NOW_MS}`);
    for (const [stored, tokens] of [
      [`0.000 ${NOW_MS - 1_000}`, 3],
      [`0.000 ${NOW_MS - 900_000}`, 5],
      [`1.000 ${NOW_MS}`, 1],
      [`1.000 ${NOW_MS + 1_000}`, 1],
    ] as const) {
      await store.redis.del(["flight", "pauses"]);
      await store.redis.hSet("rates", "a", stored);
      expect([stored, await count({ rate: "5 3" })]).toEqual([stored, tokens]);
    }
  });

  test("of one a second allows one, and no other before a second has passed", async () => {
    expect(await begin({ a: { rate: "1 1", waiting: 1 } })).toEqual({
      counts: { a: 1 },
      pauseEnd: String(NOW_MS + 1_000),
    });
    await store.redis.del("pauses");
    expect(await count({ rate: "1 1" })).toBe(0);
    expect(await rateOf("a")).toBe(`0.000 ${NOW_MS}`);
  });

  test("pauses an endpoint for at least a millisecond, and returns the earliest end", async () => {
    const endpoints = { a: { rate: "1 1" }, b: { rate: "1 2000" }, c: { rate: "2 4" } };
    expect(await begin(endpoints)).toEqual({
      counts: { a: 1, b: 1, c: 2 },
      pauseEnd: String(NOW_MS + 1),
    });
    expect(await pauses()).toEqual({ a: NOW_MS + 1_000, b: NOW_MS + 1, c: NOW_MS + 500 });
    expect(await store.redis.hVals("rates")).toEqual(Array(3).fill(`0.000 ${NOW_MS}`));
  });

  test("that is not used up is stored, and pauses nothing", async () => {
    const rate = "4 2";
    const begun = await begin({ a: { rate, waiting: 1 }, b: { rate, waiting: 0 } });
    expect(begun).toEqual({ counts: { a: 1, b: 0 }, pauseEnd: "" });
    expect(await store.redis.hGetAll("rates")).toEqual({ a: `3.000 ${NOW_MS}` });
    await store.redis.hSet("flight", "a", String(START - 1));
    expect(await begin({ a: { rate } })).toEqual({ counts: { a: 1 }, pauseEnd: "" });
    expect(await store.redis.exists("pauses")).toBe(0);
    await store.redis.hSet("flight", "a", String(START - 1));
    await store.redis.hSet("rates", "a", `0.000 ${NOW_MS}`);
    expect(await count({ rate })).toBe(0);
    expect(await pauses()).toEqual({ a: NOW_MS + 2_000 });
  });
});

describe("a share", () => {
  test("pauses an endpoint for five milliseconds, but not one that is at its concurrency or has no more to send", async () => {
    const endpoints = { a: { share: 2 }, b: { share: START }, c: { share: 3, waiting: 2 } };
    expect(await begin(endpoints)).toEqual({
      counts: { a: 2, b: START, c: 2 },
      pauseEnd: String(NOW_MS + 5),
    });
    expect(await pauses()).toEqual({ a: NOW_MS + 5 });
  });
});
