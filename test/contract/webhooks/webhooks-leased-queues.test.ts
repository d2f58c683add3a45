/** What one call of lease.lua hands out of given queues, and where their endpoints stand afterwards. */
import { beforeEach, describe, expect, test } from "bun:test";
import { run } from "#core/platform/redis/client.ts";
import { scoresOf } from "#test/support/data/scores-of.ts";
import { forAll } from "#test/support/for-all.ts";
import { scriptNamed } from "#test/support/scripts/webhook-scripts.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const store = forAll(openTestRedis);
beforeEach(() => store.redis.flushAll());

const NOW_MS = 1_000_000;
const LEASE_MS = 60_000;
/** Where the scores of failing endpoints begin. */
const FAILING = 1e15;

interface Terms {
  readonly silent?: boolean;
  readonly most?: number;
  readonly inAll?: number;
  readonly burst?: number;
  readonly perSecond?: number;
  readonly share?: number;
}

interface Call {
  readonly firsts?: readonly string[];
  readonly retries?: readonly string[];
  readonly wanted?: number;
  readonly wantedFailing?: number;
  readonly wantedSilent?: number;
  readonly perFailing?: number;
  readonly perSilent?: number;
  readonly retriesFirst?: boolean;
  readonly terms?: Readonly<Record<string, Terms>>;
}

interface Given {
  readonly endpoint: string;
  readonly delivery: string;
  readonly lease: string;
  readonly failing: boolean;
}

async function lease(call: Call) {
  const { firsts = [], retries = [], wanted = 100, terms = {} } = call;
  const ids = [...firsts, ...retries];
  const numbers = [
    ...[NOW_MS, LEASE_MS, wanted, call.wantedFailing ?? 100, call.wantedSilent ?? 100],
    ...[call.perFailing ?? 100, call.perSilent ?? 100, 100, 1_000, FAILING],
    ...[call.retriesFirst ? 1 : 0, firsts.length],
  ];
  const texts = ids.map((id) => {
    const {
      silent,
      most = 100,
      inAll = 0,
      burst = 0,
      perSecond = 0,
      share = 1_000,
    } = terms[id] ?? {};
    return [silent ? 1 : 0, most, inAll, burst, perSecond, share].join(" ");
  });
  const fixed = ["ring", "retry-ring", "leases", "flight", "turns", "failing"];
  const keys = [...fixed, "concurrencies", "rates", "pauses"];
  keys.push(...firsts.map((id) => `queue:${id}`), ...retries.map((id) => `retries:${id}`));
  const args = [...numbers.map(String), ...ids, ...texts];
  const reply = await run<[string, string, string]>(store.redis, scriptNamed("lease"), keys, args);
  const [more, text, pauseEnd] = reply;
  const lines = text === "" ? [] : text.split("\n");
  const given = Array.from({ length: lines.length / 4 }, (_, at): Given => {
    const [endpoint = "", delivery = "", own = "", failing] = lines.slice(4 * at, 4 * at + 4);
    return { endpoint, delivery, lease: own, failing: failing === "1" };
  });
  return { more, given, pauseEnd, deliveries: given.map(({ delivery }) => delivery) };
}

let turn = 0;

/** First attempts, and a place in the ring behind the others. */
async function queue(id: string, ...deliveries: readonly string[]): Promise<void> {
  turn = await store.redis.incr("turns");
  await store.redis.rPush(`queue:${id}`, [...deliveries]);
  const from = (await store.redis.zScore("failing", id)) === null ? 0 : FAILING;
  await store.redis.zAdd("ring", { value: id, score: from + turn });
}

async function retry(id: string, due: Readonly<Record<string, number>>): Promise<void> {
  const rows = Object.entries(due).map(([value, score]) => ({ value, score }));
  await store.redis.zAdd(`retries:${id}`, rows);
  const score = Math.min(...Object.values(due));
  await store.redis.zAdd("retry-ring", { value: id, score });
}

const fail = (...ids: readonly string[]) =>
  store.redis.zAdd(
    "failing",
    ids.map((value) => ({ value, score: 1 })),
  );
const standing = (ring: "ring" | "retry-ring") => store.redis.zRange(ring, 0, -1);

describe("first attempts", () => {
  test("are handed out in turn, and what is left keeps its endpoint in the ring", async () => {
    await queue("a", "a1", "a2", "a3");
    await queue("b", "b1");
    const fromMs = Date.now();
    const { given, more, deliveries, pauseEnd } = await lease({ firsts: ["a", "b"], wanted: 3 });
    expect([deliveries, more, pauseEnd]).toEqual([["a1", "b1", "a2"], "1", ""]);
    expect(await standing("ring")).toEqual(["a"]);
    expect(await store.redis.lRange("queue:a", 0, -1)).toEqual(["a3"]);
    expect(await store.redis.hGetAll("flight")).toEqual({ a: "2", b: "1" });
    const leases = await store.redis.zRangeWithScores("leases", 0, -1);
    const members = given.map((one) => `${one.endpoint} ${one.delivery} ${one.lease}`);
    expect(leases.map(({ value }) => value).toSorted()).toEqual(members.toSorted());
    for (const { score } of leases) {
      expect(score).toBeWithin(fromMs + LEASE_MS, Date.now() + LEASE_MS + 1);
    }
    expect(await lease({ firsts: ["a"] })).toMatchObject({ more: "0", deliveries: ["a3"] });
    expect(await store.redis.exists(["ring", "queue:a"])).toBe(0);
  });

  test("an endpoint that was served stands behind the others, one that was not keeps its place", async () => {
    await queue("a", "a1", "a2");
    await queue("b", "b1");
    await queue("c", "c1");
    await lease({ firsts: ["a", "b", "c"], wanted: 1 });
    expect(await standing("ring")).toEqual(["b", "c", "a"]);
    expect(await scoresOf(store.redis, "ring")).toMatchObject({ b: 2, c: 3 });
    await store.redis.rPush("queue:b", "b2");
    await lease({ firsts: ["b", "c", "a"], wanted: 1 });
    expect(await standing("ring")).toEqual(["c", "a", "b"]);
  });

  test("an endpoint that has left the ring meanwhile returns to its end with what is left", async () => {
    await queue("z", "z1");
    await queue("a", "a1");
    await store.redis.zRem("ring", "z");
    expect(await lease({ firsts: ["a", "z"], wanted: 1 })).toMatchObject({ deliveries: ["a1"] });
    expect(await standing("ring")).toEqual(["z"]);
    await queue("b", "b1");
    expect(await standing("ring")).toEqual(["z", "b"]);
  });

  test("every lease has a name of its own, and no turn is given twice", async () => {
    const names: string[] = [];
    for (let round = 0; round < 5; round += 1) {
      await queue("a", `a${round}1`, `a${round}2`, `a${round}3`);
      await queue("b", `b${round}1`, `b${round}2`);
      const before = await scoresOf(store.redis, "ring");
      names.push(...(await lease({ firsts: ["a", "b"], wanted: 3 })).given.map((one) => one.lease));
      const after = await scoresOf(store.redis, "ring");
      expect(Math.min(...Object.values(after))).toBeGreaterThan(
        Math.max(...Object.values(before)) - 1,
      );
      expect(Math.max(...Object.values(after))).toBeLessThanOrEqual(
        Number(await store.redis.get("turns")),
      );
    }
    expect(names.every((name) => /^\d+$/.test(name))).toBe(true);
    expect(new Set(names).size).toBe(15);
  });

  test("'1' is answered while a healthy endpoint has more, named or not; a failing or full one is none", async () => {
    await queue("a", "a1");
    await queue("b", "b1", "b2");
    expect((await lease({ firsts: ["a"] })).more).toBe("1");
    expect((await lease({ firsts: ["b"], terms: { b: { most: 1 } } })).more).toBe("0");
    expect(await standing("ring")).toEqual([]);
    await fail("c");
    await queue("c", "c1", "c2");
    expect((await lease({ firsts: ["c"], wanted: 1 })).more).toBe("0");
    await queue("d", "d1");
    expect((await lease({ firsts: ["c"] })).more).toBe("1");
  });

  test("nothing is done where no endpoint is named", async () => {
    expect(await lease({})).toMatchObject({ more: "0", given: [], pauseEnd: "" });
    expect(await store.redis.dbSize()).toBe(0);
  });
});

describe("failing and silent endpoints", () => {
  test("failing endpoints share what is left for them, behind the healthy ones", async () => {
    await fail("a", "b");
    await queue("a", "a1", "a2");
    await queue("b", "b1", "b2");
    await queue("h", "h1", "h2", "h3");
    const found = await lease({ firsts: ["h", "a", "b"], wanted: 4, wantedFailing: 3 });
    expect(found.deliveries).toEqual(["h1", "a1", "b1", "h2"]);
    expect(found.given.map(({ failing }) => failing)).toEqual([false, true, true, false]);
    expect(await standing("ring")).toEqual(["h", "a", "b"]);
    const { a = 0, b = 0 } = await scoresOf(store.redis, "ring");
    expect([a > FAILING, b > FAILING]).toEqual([true, true]);
    expect((await lease({ firsts: ["a", "b"], wantedFailing: 1 })).deliveries).toEqual(["a2"]);
    expect((await lease({ firsts: ["b"], wantedFailing: 0 })).deliveries).toEqual([]);
    expect(await standing("ring")).toEqual(["h", "b"]);
  });

  test("a failing endpoint has no more under way than it may, and leaves the ring", async () => {
    await fail("a");
    await queue("a", "a1", "a2", "a3");
    expect((await lease({ firsts: ["a"], perFailing: 2 })).deliveries).toEqual(["a1", "a2"]);
    expect(await store.redis.exists("ring")).toBe(0);
  });

  test("a silent endpoint takes no slot and nothing of what is for failing ones", async () => {
    await fail("s", "f");
    await queue("s", "s1", "s2", "s3");
    await queue("f", "f1", "f2");
    const terms = { s: { silent: true } };
    const budget = { wanted: 2, wantedFailing: 2, wantedSilent: 2 };
    const { given, deliveries } = await lease({ firsts: ["s", "f"], ...budget, terms });
    expect(deliveries).toEqual(["s1", "f1", "s2", "f2"]);
    expect(given.map((one) => one.lease.startsWith("w"))).toEqual([true, false, true, false]);
    expect(await store.redis.hGetAll("flight")).toEqual({ "w s": "2", f: "2" });
    expect(await standing("ring")).toEqual(["s"]);
    const none = { firsts: ["s"], wantedSilent: 0, terms };
    expect(await lease(none)).toMatchObject({ deliveries: [], more: "0" });
  });
});

describe("retries", () => {
  test("are handed out from the moment on that they are due, and the next one says when its endpoint is", async () => {
    await retry("a", { a1: NOW_MS - 1, a2: NOW_MS, a3: NOW_MS + 1, a4: NOW_MS + 9 });
    const { deliveries } = await lease({ retries: ["a"] });
    expect(deliveries).toEqual(["a1", "a2"]);
    expect(await store.redis.zRange("retries:a", 0, -1)).toEqual(["a3", "a4"]);
    expect(await scoresOf(store.redis, "retry-ring")).toEqual({ a: NOW_MS + 1 });
    await fail("a");
    expect((await lease({ retries: ["a"] })).deliveries).toEqual([]);
    expect(await scoresOf(store.redis, "retry-ring")).toEqual({ a: FAILING + NOW_MS + 1 });
  });

  test("of an endpoint with as many under way as it may have stay, without it in the ring", async () => {
    await retry("a", { a1: 1, a2: 2, a3: 3 });
    const terms = { a: { most: 2 } };
    expect((await lease({ retries: ["a"], terms })).deliveries).toEqual(["a1", "a2"]);
    expect(await store.redis.exists("retry-ring")).toBe(0);
    await store.redis.zAdd("retry-ring", { value: "a", score: 3 });
    expect((await lease({ retries: ["a"], terms })).deliveries).toEqual([]);
    expect(await store.redis.exists("retry-ring")).toBe(0);
  });

  test("of an endpoint whose last one is handed out leave the ring with it", async () => {
    await retry("a", { a1: 1 });
    expect((await lease({ retries: ["a"] })).deliveries).toEqual(["a1"]);
    expect(await store.redis.exists(["retries:a", "retry-ring"])).toBe(0);
  });

  test("that come last wait until no healthy endpoint has first attempts left", async () => {
    await queue("a", "a1", "a2");
    await retry("a", { r1: 1 });
    await retry("b", { r2: 1 });
    const both = { firsts: ["a"], retries: ["a", "b"] };
    expect((await lease({ ...both, wanted: 1 })).deliveries).toEqual(["a1"]);
    expect((await lease({ ...both, wanted: 2 })).deliveries).toEqual(["a2", "r1"]);
    expect(await standing("retry-ring")).toEqual(["b"]);
  });

  test("that come first are handed out once, before first attempts", async () => {
    await queue("a", "a1", "a2");
    await retry("a", { r1: 1, r2: 2 });
    const both = { firsts: ["a"], retries: ["a"], retriesFirst: true };
    expect((await lease({ ...both, wanted: 3 })).deliveries).toEqual(["r1", "r2", "a1"]);
    expect((await lease(both)).deliveries).toEqual(["a2"]);
    await retry("b", { r3: 1 });
    expect((await lease({ retries: ["b"], retriesFirst: true })).deliveries).toEqual(["r3"]);
    expect(await store.redis.hGetAll("flight")).toEqual({ a: "4", b: "1" });
  });
});

describe("an endpoint's capacity", () => {
  test("a concurrency counts what is under way, a limit of its own also what takes no slot", async () => {
    await queue("a", "a1", "a2", "a3", "a4", "a5");
    await store.redis.hSet("flight", { a: "1", "w a": "2" });
    const leased = async (terms: Terms) =>
      (await lease({ firsts: ["a"], terms: { a: terms } })).given;
    expect(await leased({ most: 2 })).toHaveLength(1);
    expect(await leased({ inAll: 5 })).toHaveLength(1);
    expect(await store.redis.hGetAll("flight")).toEqual({ a: "3", "w a": "2" });
    expect(await leased({ inAll: 5 })).toEqual([]);
    expect(await leased({ inAll: 6 })).toHaveLength(1);
  });

  test("what a tenant's share holds back waits for five milliseconds", async () => {
    await queue("a", "a1", "a2");
    await queue("b", "b1");
    const terms = { a: { share: 1 }, b: { share: 1 } };
    const found = await lease({ firsts: ["a", "b"], terms });
    expect(found).toMatchObject({ deliveries: ["a1", "b1"], pauseEnd: String(NOW_MS + 5) });
    expect(await store.redis.zScore("pauses", "a")).toBe(NOW_MS + 5);
    expect(await standing("ring")).toEqual([]);
    const paused = await lease({ firsts: ["a"] });
    expect(paused.deliveries).toEqual([]);
  });
});
