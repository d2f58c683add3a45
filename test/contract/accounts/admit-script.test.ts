/** admit.lua (document 1, "Limits"), one call at a time: the token bucket of a channel, and the suspension of an API key. */
import { beforeEach, expect, test } from "bun:test";
import admitSource from "#core/merchants/store/admit.lua" with { type: "text" };
import { run, script } from "#core/platform/redis/client.ts";
import { expectExpiry } from "#test/support/data/expect-expiry.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const NOW_MS = 1_800_000_000_000;
const CYCLE_MS = 60_000;
const WITHIN_MS = 300_000;
const HOUR_MS = 3_600_000;

const [LIMITED, ADMITTED, SUSPENDED] = [0, 1, 2];

const store = forAll(openTestRedis);
beforeEach(() => store.redis.flushAll());

/** @returns verdict, tokens left, next refill and end of the suspension, both in milliseconds since `NOW_MS` */
async function admit(
  atMs: number,
  { capacity = 5, refill = 2, cycleMs = CYCLE_MS, limit = 100 } = {},
): Promise<number[]> {
  const args = [NOW_MS + atMs, capacity, refill, cycleMs, limit, WITHIN_MS, HOUR_MS].map(String);
  const keys = ["bucket", "rejections", "suspension"];
  const reply = await run<number[]>(store.redis, script(admitSource), keys, args);
  const [verdict = -1, tokens = -1, refillAtMs = 0, untilMs = 0] = reply;
  return [verdict, tokens, refillAtMs - NOW_MS, untilMs && untilMs - NOW_MS];
}

const bucket = () => store.redis.hGetAll("bucket");

test("a full bucket of 5 admits 5 requests, and its cycle begins with the first", async () => {
  for (const n of [0, 1, 2, 3, 4]) {
    expect(await admit(n)).toEqual([ADMITTED, 4 - n, CYCLE_MS, 0]);
  }
  expect(await admit(5)).toEqual([LIMITED, 0, CYCLE_MS, 0]);
  expect(await bucket()).toEqual({ t: "0", s: String(NOW_MS) });
});

test("tokens are added when a cycle ends, not a millisecond earlier", async () => {
  await store.redis.hSet("bucket", { t: 0, s: NOW_MS });
  expect(await admit(CYCLE_MS - 1)).toEqual([LIMITED, 0, CYCLE_MS, 0]);
  expect(await admit(CYCLE_MS)).toEqual([ADMITTED, 1, 2 * CYCLE_MS, 0]);
  expect(await admit(2.5 * CYCLE_MS)).toEqual([ADMITTED, 2, 3 * CYCLE_MS, 0]);
  expect(await admit(4.5 * CYCLE_MS, { capacity: 10 })).toEqual([ADMITTED, 5, 5 * CYCLE_MS, 0]);
  expect(await bucket()).toEqual({ t: "5", s: String(NOW_MS + 4 * CYCLE_MS) });
});

test("once a bucket is full again, its cycle begins with the next request", async () => {
  await store.redis.hSet("bucket", { t: 3, s: NOW_MS });
  expect(await admit(1.5 * CYCLE_MS)).toEqual([ADMITTED, 4, 2.5 * CYCLE_MS, 0]);
  expect(await admit(20.5 * CYCLE_MS)).toEqual([ADMITTED, 4, 21.5 * CYCLE_MS, 0]);
});

test("a clock that goes back takes no tokens away", async () => {
  await store.redis.hSet("bucket", { t: 3, s: NOW_MS });
  expect(await admit(-1.5 * CYCLE_MS)).toEqual([ADMITTED, 2, CYCLE_MS, 0]);
});

test("the bucket expires when it would be full again", async () => {
  for (const cycles of [1, 1, 2]) {
    await expectExpiry(store.redis, "bucket", cycles * CYCLE_MS, () => admit(0));
  }
});

test("the third 429 within the window suspends the key for an hour", async () => {
  const limits = { capacity: 1, limit: 3, cycleMs: 24 * HOUR_MS };
  const refillMs = limits.cycleMs;
  await admit(0, limits);
  for (const ms of [1, 2]) {
    const rejected = expectExpiry(store.redis, "rejections", WITHIN_MS, () => admit(ms, limits));
    expect(await rejected).toEqual([LIMITED, 0, refillMs, 0]);
    expect(await store.redis.exists("suspension")).toBe(0);
  }
  const third = expectExpiry(store.redis, "suspension", HOUR_MS, () =>
    admit(1 + WITHIN_MS, limits),
  );
  expect(await third).toEqual([LIMITED, 0, refillMs, 0]);
  const untilMs = 1 + WITHIN_MS + HOUR_MS;
  expect(await store.redis.get("suspension")).toBe(String(NOW_MS + untilMs));
  expect(await store.redis.exists("rejections")).toBe(0);
  expect(await admit(untilMs - 1, limits)).toEqual([SUSPENDED, 0, refillMs, untilMs]);
  expect(await store.redis.exists("rejections")).toBe(0);
  expect(await admit(untilMs, limits)).toEqual([LIMITED, 0, refillMs, 0]);
});

test("429s that are further apart suspend nobody, and only the last three count", async () => {
  const limits = { capacity: 1, limit: 3, cycleMs: 24 * HOUR_MS };
  await admit(0, limits);
  for (const ms of [1, 2, 2 + WITHIN_MS]) await admit(ms, limits);
  expect(await store.redis.exists("suspension")).toBe(0);
  await admit(2 + WITHIN_MS, limits);
  expect(await store.redis.exists("suspension")).toBe(1);
});

test("a suspended key takes no token, even from a full bucket", async () => {
  await store.redis.set("suspension", NOW_MS + 1);
  expect(await admit(0)).toEqual([SUSPENDED, 5, CYCLE_MS, 1]);
  expect(await bucket()).toEqual({});
  expect(await admit(1)).toEqual([ADMITTED, 4, CYCLE_MS + 1, 0]);
});
