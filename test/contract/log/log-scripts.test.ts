/** The log scripts, called one at a time: events are claimed, remembered, acknowledged and retried. */
import { beforeEach, describe, expect, test } from "bun:test";
import claimSource from "#core/events/store/claim.lua" with { type: "text" };
import rememberSource from "#core/events/store/remember.lua" with { type: "text" };
import acknowledgeSource from "#core/platform/log/acknowledge.lua" with { type: "text" };
import raiseSource from "#core/platform/log/raise-field.lua" with { type: "text" };
import settleSource from "#core/platform/log/settle-retry.lua" with { type: "text" };
import { run, script } from "#core/platform/redis/client.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const store = forAll(openTestRedis);
beforeEach(() => store.redis.flushAll());

describe("claim.lua", () => {
  interface Claim {
    readonly id: number;
    /** "" to look without claiming. */
    readonly text: string;
    readonly goesTo?: number;
  }

  const COUNT = '["DHL","ACCEPTED",""]';
  const COUNT_AGAIN = '["DHL","DUPLICATE",""]';

  /** @returns a digit for each, "" over the mark */
  function claim(
    claims: readonly Claim[],
    { mark = 100, courier = "DHL", generations = 2 } = {},
  ): Promise<string> {
    const keys = ["log", "ledger", "counts", "hours", "log-counts", "retries"];
    for (const { id } of claims) {
      keys.push(...Array.from({ length: generations }, (_, n) => `bucket:${id}:${n}`));
    }
    const lines = claims.map(({ id, text, goesTo = 1 }) => `${id} ${text.length} ${goesTo}\n`);
    const texts = claims.map(({ text }) => text).join("");
    return run<string>(store.redis, script(claimSource), keys, [
      ...[String(mark), "3600", courier, "2026-11-20T10"],
      ...[String(generations), lines.join(""), texts],
    ]);
  }

  const logged = async () =>
    ((await store.redis.xRange("log", "-", "+")) ?? []).map(({ message }) => message["e"]);

  test("tells what is new from what any generation knows, and logs the new ones alone", async () => {
    await store.redis.sAdd("bucket:1:2", "1");
    await store.redis.sAdd("bucket:3:0", "3");
    await store.redis.sAdd("bucket:5:1", "5");
    const texts = { 1: "a", 2: "b", 3: "c", 4: "d", 5: "e", 6: "f" };
    const claims = Object.entries(texts).map(([id, text]) => ({ id: Number(id), text }));
    expect(await claim(claims, { generations: 3 })).toBe("010101");
    expect(await logged()).toEqual(["bdf"]);
    expect(await claim(claims, { generations: 3 })).toBe("000000");
    expect(await logged()).toEqual(["bdf"]);
    expect(await store.redis.sMembers("bucket:2:0")).toEqual(["2"]);
    expect(await store.redis.ttl("bucket:2:0")).toBeWithin(3_000, 3_601);
  });

  test("the buckets of another event do not make one known", async () => {
    await store.redis.sAdd("bucket:1:1", "2");
    await store.redis.sAdd("bucket:3:0", "2");
    const claims = [1, 2, 3].map((id) => ({ id, text: `${id}` }));
    expect(await claim(claims)).toBe("111");
  });

  test("a look claims nothing and counts only what is known", async () => {
    await store.redis.sAdd("bucket:1:0", "1");
    await store.redis.sAdd("bucket:2:1", "2");
    const look = (id: number) => ({ id, text: "" });
    expect(await claim([look(1), look(2), look(3)])).toBe("002");
    expect(await store.redis.hGetAll("ledger")).toEqual({
      "received:DHL": "2",
      "duplicate:DHL": "2",
    });
    expect(await store.redis.exists(["log", "log-counts", "bucket:3:0"])).toBe(0);
    expect(await claim([look(1), { id: 4, text: "d" }, look(5), { id: 6, text: "f" }])).toBe(
      "0121",
    );
    expect(await logged()).toEqual(["df"]);
    await store.redis.del(["ledger", "hours", "counts"]);
    expect(await claim([look(3)])).toBe("2");
    expect(await store.redis.exists(["ledger", "hours", "counts"])).toBe(0);
  });

  test("counts by courier and hour what was accepted, known, and goes to further shipments", async () => {
    expect(await claim([{ id: 1, text: "a" }])).toBe("1");
    expect(await store.redis.hGetAll("ledger")).toEqual({
      "received:DHL": "1",
      "accepted:DHL": "1",
    });
    expect(await store.redis.hGetAll("counts")).toEqual({ [COUNT]: "1" });
    expect(await store.redis.sMembers("hours")).toEqual(["2026-11-20T10"]);
    expect(await store.redis.hGetAll("log-counts")).toEqual({ logged: "1" });
    const more = [
      { id: 1, text: "a", goesTo: 5 },
      { id: 2, text: "b", goesTo: 3 },
      { id: 3, text: "c" },
    ];
    expect(await claim(more)).toBe("011");
    expect(await store.redis.hGetAll("ledger")).toEqual({
      "received:DHL": "4",
      "accepted:DHL": "3",
      "duplicate:DHL": "1",
      "further:DHL": "2",
    });
    expect(await store.redis.hGetAll("counts")).toEqual({ [COUNT]: "3", [COUNT_AGAIN]: "1" });
    expect(await store.redis.hGetAll("log-counts")).toEqual({ logged: "5" });
    await store.redis.del(["ledger", "counts", "hours"]);
    expect(await claim([...more, { id: 4, text: "d" }], { courier: "" })).toBe("0001");
    expect(await store.redis.exists(["ledger", "counts", "hours"])).toBe(0);
  });

  test("is refused with nothing done once as many wait as the mark, retries among them", async () => {
    expect(await claim([{ id: 1, text: "a" }], { mark: 1 })).toBe("1");
    expect(await claim([{ id: 2, text: "b" }], { mark: 1 })).toBe("");
    expect(await store.redis.exists("bucket:2:0")).toBe(0);
    await store.redis.hSet("log-counts", { logged: "5", track: "3" });
    await store.redis.zAdd("retries", { value: "x", score: 1 });
    expect(await claim([{ id: 2, text: "b" }], { mark: 3 })).toBe("");
    expect(await claim([{ id: 2, text: "b" }], { mark: 4 })).toBe("1");
    expect(await logged()).toEqual(["a", "b"]);
  });
});

describe("remember.lua", () => {
  const LIVES_SECONDS = 3_600;

  /** @returns how many were new */
  const remember = (...ids: readonly (readonly [bucket: string, id: string])[]) => {
    const buckets = ids.map(([bucket]) => bucket);
    const args = [String(LIVES_SECONDS), ...ids.map(([, id]) => id)];
    return run<number>(store.redis, script(rememberSource), buckets, args);
  };

  test("remembers each id in its bucket", async () => {
    expect(await remember(["a", "1"], ["b", "-2"], ["a", "3"])).toBe(3);
    expect(await remember(["a", "1"], ["b", "1"])).toBe(1);
    expect((await store.redis.sMembers("a")).toSorted()).toEqual(["1", "3"]);
    expect((await store.redis.sMembers("b")).toSorted()).toEqual(["-2", "1"]);
  });

  test("a bucket's expiry counts from its first id", async () => {
    await remember(["a", "1"]);
    expect(await store.redis.ttl("a")).toBeWithin(LIVES_SECONDS - 600, LIVES_SECONDS + 1);
    await store.redis.expire("a", 600);
    await remember(["a", "2"], ["a", "3"]);
    expect(await store.redis.ttl("a")).toBeWithin(1, 601);
  });
});

describe("raise-field.lua", () => {
  const raise = (to: number) =>
    run<number>(store.redis, script(raiseSource), ["hash"], ["taken", String(to)]);

  test("raises a number, and never lowers it", async () => {
    for (const to of [1, 7, 9, 10]) {
      expect(await raise(to)).toBe(to);
      expect(await store.redis.hGetAll("hash")).toEqual({ taken: String(to) });
    }
    for (const to of [10, 9, 0]) expect(await raise(to)).toBe(10);
    expect(await store.redis.hGetAll("hash")).toEqual({ taken: "10" });
  });

  test("does not create a field for 0", async () => {
    expect(await raise(0)).toBe(0);
    expect(await store.redis.exists("hash")).toBe(0);
  });
});

describe("acknowledge.lua", () => {
  const KEYS = ["log", "counts", "retries", "ages"];
  const DELAY_MS = 60_000;

  /** Entries of so many events, read by one consumer. */
  async function read(count: number): Promise<string[]> {
    await store.redis.xGroupCreate("log", "track", "0", { MKSTREAM: true });
    for (let n = 0; n < count; n += 1) await store.redis.xAdd("log", "*", { e: String(n) });
    await store.redis.xReadGroup("track", "me", { key: "log", id: ">" });
    return ((await store.redis.xRange("log", "-", "+")) ?? []).map(({ id }) => id);
  }

  const acknowledge = (
    entries: readonly (readonly [id: string, events: number])[],
    failures: readonly (readonly [id: string, text: string])[] = [],
  ) =>
    run<number>(store.redis, script(acknowledgeSource), KEYS, [
      ...["track", String(DELAY_MS), String(entries.length)],
      ...entries.flat().map(String),
      ...failures.flat(),
    ]);

  test("counts what stood in its entries, once, and keeps what failed until its next try", async () => {
    const [one = "", two = ""] = await read(2);
    const entries = [[one, 3] as const, [two, 1] as const];
    const fromMs = Date.now();
    expect(await acknowledge(entries, [[two, "failed"]])).toBe(1);
    expect(await store.redis.hGetAll("counts")).toEqual({ track: "4" });
    expect((await store.redis.xPending("log", "track")).pending).toBe(0);
    const [kept] = await store.redis.zRangeWithScores("retries", 0, -1);
    expect(kept?.value).toBe("failed");
    expect(kept?.score).toBeWithin(fromMs + DELAY_MS, Date.now() + DELAY_MS + 1);
    expect(await store.redis.zScore("ages", "failed")).toBe(Number(two.split("-")[0]));
    await store.redis.del(["retries", "ages", "counts"]);
    expect(await acknowledge(entries, [[two, "failed"]])).toBe(1);
    expect(await store.redis.exists(["retries", "ages", "counts"])).toBe(0);
  });

  test("keeps each event that failed, with the time of its entry", async () => {
    const [one = "", two = ""] = await read(2);
    const entries = [[one, 1] as const, [two, 2] as const];
    const failed = [[one, "a"] as const, [two, "b"] as const, [two, "c"] as const];
    await acknowledge(entries, failed);
    expect(await store.redis.zRange("retries", 0, -1)).toEqual(["a", "b", "c"]);
    const timeOf = (id: string) => Number(id.split("-")[0]);
    expect(await store.redis.zRangeWithScores("ages", 0, -1)).toEqual([
      { value: "a", score: timeOf(one) },
      ...["b", "c"].map((value) => ({ value, score: timeOf(two) })),
    ]);
  });

  test("counts an entry of one event, and keeps nothing where none failed", async () => {
    const [one = ""] = await read(1);
    expect(await acknowledge([[one, 1]])).toBe(1);
    expect(await store.redis.hGetAll("counts")).toEqual({ track: "1" });
    expect(await store.redis.exists(["retries", "ages"])).toBe(0);
  });
});

describe("settle-retry.lua", () => {
  const KEYS = ["retries", "ages", "letters"];
  const WAIT_MS = 60_000;
  const NEXT_MS = 4_000;

  interface Settled {
    readonly text: string;
    readonly again?: string;
    readonly inMs?: number;
    readonly reason?: string;
  }

  const textOf = (id: string) => JSON.stringify({ id, entry: `{"e":"${id}"}` });

  async function wait(...texts: readonly string[]): Promise<void> {
    for (const [at, value] of texts.entries()) {
      await store.redis.zAdd("retries", { value, score: 1 });
      await store.redis.zAdd("ages", { value, score: 100 + at });
    }
  }

  /** @returns for each 1 = settled, 2 = it waits, 0 = another process has settled it */
  const settle = (all: readonly Settled[], letters = 100) =>
    run<number[]>(store.redis, script(settleSource), KEYS, [
      ...["log", "track", String(letters), String(WAIT_MS)],
      ...all.flatMap(({ text, again = "", inMs = 0, reason = "" }) => {
        return [text, again, String(inMs), reason];
      }),
    ]);

  const letters = async () =>
    ((await store.redis.xRange("letters", "-", "+")) ?? []).map(({ message }) => message);

  test("what is done goes, and what is tried again waits, as old as it was", async () => {
    const [done, failed] = [textOf("1-1"), textOf("2-1")];
    await wait(done, failed);
    const fromMs = Date.now();
    const tries = [{ text: done }, { text: failed, again: "again", inMs: NEXT_MS }];
    expect(await settle(tries)).toEqual([1, 1]);
    const [kept, ...others] = await store.redis.zRangeWithScores("retries", 0, -1);
    expect([kept?.value, others]).toEqual(["again", []]);
    expect(kept?.score).toBeWithin(fromMs + NEXT_MS, Date.now() + NEXT_MS + 1);
    expect(await store.redis.zRangeWithScores("ages", 0, -1)).toEqual([
      { value: "again", score: 101 },
    ]);
    expect(await store.redis.exists("letters")).toBe(0);
    expect(await settle(tries)).toEqual([0, 0]);
    expect(await store.redis.zRange("retries", 0, -1)).toEqual(["again"]);
  });

  test("what has failed for the last time becomes a dead letter, once", async () => {
    const text = textOf("7-1");
    await wait(text);
    const last = { text, reason: "gave up" };
    expect(await settle([last, last])).toEqual([1, 0]);
    expect(await letters()).toEqual([
      { log: "log", group: "track", id: "7-1", reason: "gave up", entry: '{"e":"7-1"}' },
    ]);
    expect(await store.redis.exists(["retries", "ages"])).toBe(0);
    expect(await settle([last])).toEqual([0]);
    expect(await letters()).toHaveLength(1);
  });

  test("a log with 3 dead letters takes no fourth: it waits, and takes no room from others", async () => {
    await store.redis.xAdd("letters", "*", { id: "before" });
    const texts = ["1-1", "2-1", "3-1", "4-1"].map(textOf);
    const [one = "", two = "", three = "", four = ""] = texts;
    await wait(...texts);
    const last = (text: string) => ({ text, reason: "gave up" });
    const fromMs = Date.now();
    expect(await settle([last(one), { text: four }, last(two), last(three)], 3)).toEqual([
      1, 1, 1, 2,
    ]);
    expect(await letters()).toHaveLength(3);
    const [kept, ...others] = await store.redis.zRangeWithScores("retries", 0, -1);
    expect([kept?.value, others]).toEqual([three, []]);
    expect(kept?.score).toBeWithin(fromMs + WAIT_MS, Date.now() + WAIT_MS + 1);
    expect(await store.redis.zRange("ages", 0, -1)).toEqual([three]);
    expect(await settle([last(three)], 4)).toEqual([1]);
    expect(await letters()).toHaveLength(4);
  });
});
