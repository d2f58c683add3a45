/** The configuration scripts, called one at a time: secrets are checked and sealed again, key users and sessions recorded. */
import { beforeEach, describe, expect, test } from "bun:test";
import openSource from "#core/accounts/store/open-session.lua" with { type: "text" };
import usersSource from "#core/configuration/store/key-users.lua" with { type: "text" };
import resealSource from "#core/configuration/store/reseal.lua" with { type: "text" };
import { run, script } from "#core/platform/redis/client.ts";
import checkSource from "#core/platform/secrets/check-secret.lua" with { type: "text" };
import { expectExpiry } from "#test/support/data/expect-expiry.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const store = forAll(openTestRedis);
beforeEach(() => store.redis.flushAll());

describe("check-secret.lua", () => {
  const NOW_MS = 1_000_000;
  const KEPT_MS = 60_000;
  const NOTED_AGAIN_MS = 5_000;
  /** From an empty bucket to its first token. A power of two, so that fractions of a token are exact. */
  const TOKEN_MS = 8_192;
  const WRONG = "";
  const CHECKED = [1, 0];
  const refusedFor = (waitMs: number) => [0, waitMs];

  const check = (
    holder: string,
    afterMs = 0,
    { tokenMs = TOKEN_MS, burst = 3, holders = 2, isRight = holder !== WRONG } = {},
  ) =>
    run<number[]>(
      store.redis,
      script(checkSource),
      ["bucket", "holders", holder === WRONG ? "bucket" : `own:${holder}`],
      [
        ...[NOW_MS + afterMs, 1_000 / tokenMs, burst],
        ...[holder, Number(isRight), holders, KEPT_MS, NOTED_AGAIN_MS],
      ].map(String),
    );
  const bucket = () => store.redis.hGetAll("bucket");

  async function empty(limits = {}): Promise<void> {
    for (let times = 0; times < 3; times += 1) {
      expect(await check(WRONG, 0, limits)).toEqual(CHECKED);
    }
  }

  test("wrong secrets empty the bucket, and the fourth must wait for a token", async () => {
    await empty();
    expect(await bucket()).toEqual({ tokens: "0", at: String(NOW_MS) });
    expect(await check(WRONG)).toEqual(refusedFor(TOKEN_MS));
    expect(await check(WRONG, TOKEN_MS / 2)).toEqual(refusedFor(TOKEN_MS / 2));
    expect(await check(WRONG, TOKEN_MS - 1)).toEqual(refusedFor(1));
    expect(await bucket()).toEqual({ tokens: "0", at: String(NOW_MS) });
    expect(await check(WRONG, TOKEN_MS)).toEqual(CHECKED);
    expect(await check(WRONG, TOKEN_MS)).toEqual(refusedFor(TOKEN_MS));
  });

  test("the bucket refills up to its size and no further", async () => {
    await empty();
    const muchLater = 100 * TOKEN_MS;
    expect(await check(WRONG, muchLater)).toEqual(CHECKED);
    expect(await bucket()).toEqual({ tokens: "2", at: String(NOW_MS + muchLater) });
  });

  test("a clock that goes back refills nothing and takes nothing away", async () => {
    expect(await check(WRONG, 2 * TOKEN_MS)).toEqual(CHECKED);
    expect(await check(WRONG)).toEqual(CHECKED);
    expect(await bucket()).toEqual({ tokens: "1", at: String(NOW_MS + 2 * TOKEN_MS) });
  });

  test("the bucket expires a second after it would be full", async () => {
    await expectExpiry(store.redis, "bucket", 3 * TOKEN_MS + 1_000, () => check(WRONG));
    const slow = { tokenMs: 1_000_000, burst: 10 };
    await expectExpiry(store.redis, "bucket", 10_000_000 + 1_000, () => check(WRONG, 0, slow));
  });

  test("a correct secret takes no token; an empty bucket refuses it only from a new holder", async () => {
    expect(await check("known")).toEqual(CHECKED);
    expect(await bucket()).toEqual({});
    await empty();
    expect(await check("known")).toEqual(CHECKED);
    expect(await check("new")).toEqual(refusedFor(TOKEN_MS));
    expect(await check("new", TOKEN_MS - 1)).toEqual(refusedFor(1));
    expect(await store.redis.zRange("holders", 0, -1)).toEqual(["known"]);
    expect(await check("new", TOKEN_MS)).toEqual(CHECKED);
    expect(await bucket()).toEqual({ tokens: "0", at: String(NOW_MS) });
  });

  test("wrong secrets of a holder that is known empty a bucket of its own, which then refuses its right one", async () => {
    const wrong = { isRight: false };
    await check("known");
    for (let times = 0; times < 3; times += 1) {
      expect(await check("known", 0, wrong)).toEqual(CHECKED);
    }
    expect(await check("known", 0, wrong)).toEqual(refusedFor(TOKEN_MS));
    expect(await check("known")).toEqual(refusedFor(TOKEN_MS));
    expect(await bucket()).toEqual({});
    expect(await check("new")).toEqual(CHECKED);
    expect(await check("known", TOKEN_MS)).toEqual(CHECKED);
  });

  test("wrong secrets of a holder that is not known are everybody's", async () => {
    await check("stranger", 0, { isRight: false });
    expect((await bucket())["tokens"]).toBe("2");
    expect(await store.redis.exists("holders")).toBe(0);
  });

  test("a holder is known for its time, to the millisecond", async () => {
    await check("one");
    await check("other", 1);
    const slow = { tokenMs: 2 * KEPT_MS };
    await empty(slow);
    expect(await check("one", KEPT_MS, slow)).toEqual(refusedFor(KEPT_MS));
    expect(await check("other", KEPT_MS, slow)).toEqual(CHECKED);
  });

  test("a holder is recorded again after a while, not each time", async () => {
    const notedMs = async () => Number(await store.redis.zScore("holders", "one")) - NOW_MS;
    await expectExpiry(store.redis, "holders", KEPT_MS, () => check("one"));
    await store.redis.persist("holders");
    await check("one", NOTED_AGAIN_MS - 1);
    expect([await notedMs(), await store.redis.pTTL("holders")]).toEqual([0, -1]);
    await expectExpiry(store.redis, "holders", KEPT_MS, () => check("one", NOTED_AGAIN_MS));
    expect(await notedMs()).toBe(NOTED_AGAIN_MS);
  });

  test("keeps the 2 most recent of 3 holders", async () => {
    for (const [at, holder] of ["b", "c", "a"].entries()) await check(holder, at);
    expect(await store.redis.zRange("holders", 0, -1)).toEqual(["c", "a"]);
  });
});

describe("key-users.lua", () => {
  const LIFE_MS = 60_000;

  const call = (what: string, user = "", lifeMs = LIFE_MS) =>
    run<string[]>(store.redis, script(usersSource), ["users"], [what, user, String(lifeMs)]);

  test("a heartbeat keeps a process alive for as long as it says", async () => {
    const fromMs = Date.now();
    expect(await call("beat", "one")).toEqual(["one"]);
    expect(await store.redis.zScore("users", "one")).toBeWithin(
      fromMs + LIFE_MS,
      Date.now() + LIFE_MS + 1,
    );
    expect(await call("beat", "other", 2 * LIFE_MS)).toEqual(["one", "other"]);
    expect(await call("beat", "one", 3 * LIFE_MS)).toEqual(["other", "one"]);
  });

  test("a process that leaves is no longer listed, and asking lists nobody", async () => {
    await call("beat", "one");
    await call("beat", "other");
    expect(await call("list", "who asks")).toEqual(["one", "other"]);
    expect(await call("leave", "one")).toEqual(["other"]);
    expect(await store.redis.zRange("users", 0, -1)).toEqual(["other"]);
  });

  test("a process without heartbeats is forgotten", async () => {
    await store.redis.zAdd("users", { value: "ended", score: Date.now() });
    expect(await call("beat", "one", 0)).toEqual([]);
    expect(await store.redis.exists("users")).toBe(0);
  });
});

describe("reseal.lua", () => {
  const reseal = (...changes: ReadonlyArray<readonly [field: string, from: string, to: string]>) =>
    run<number>(store.redis, script(resealSource), ["entity"], changes.flat());

  test("replaces all fields given, and leaves the others", async () => {
    await store.redis.hSet("entity", { a: "1", b: "2", c: "3", d: "4" });
    expect(await reseal(["a", "1", "10"], ["b", "2", "20"], ["c", "3", "30"])).toBe(1);
    expect(await store.redis.hGetAll("entity")).toEqual({ a: "10", b: "20", c: "30", d: "4" });
  });

  test.each([
    ["first field", ["a", "0", "10"], ["b", "2", "20"]],
    ["last field", ["a", "1", "10"], ["b", "0", "20"]],
    ["missing field", ["a", "1", "10"], ["c", "", "20"]],
  ] as const)("replaces nothing if another writer has changed the %s", async (_, one, other) => {
    await store.redis.hSet("entity", { a: "1", b: "2" });
    expect(await reseal(one, other)).toBe(0);
    expect(await store.redis.hGetAll("entity")).toEqual({ a: "1", b: "2" });
  });
});

test("open-session.lua stores the record until it expires", async () => {
  const open = () => run<number>(store.redis, script(openSource), ["session"], ["record", "60000"]);
  expect(await expectExpiry(store.redis, "session", 60_000, open)).toBe(1);
  expect(await store.redis.get("session")).toBe("record");
});
