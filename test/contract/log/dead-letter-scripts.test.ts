/** The dead letter scripts, called one at a time: dead letters are redriven, discarded or replaced. */
import { beforeEach, describe, expect, test } from "bun:test";
import discardSource from "#core/platform/log/discard.lua" with { type: "text" };
import redriveSource from "#core/platform/log/redrive.lua" with { type: "text" };
import replaceLetterSource from "#core/platform/log/replace-letter.lua" with { type: "text" };
import replaceRetrySource from "#core/platform/log/replace-retry.lua" with { type: "text" };
import { run, script } from "#core/platform/redis/client.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const NOW_MS = 1_800_000_000_000;
const [ONE, TWO] = ["100-1", "200-1"];
const LETTER = { log: "log", group: "track", id: "70-3", reason: "gave up", entry: '{"e":"x"}' };

const store = forAll(openTestRedis);
beforeEach(() => store.redis.flushAll());

const put = (id: string, letter: Readonly<Record<string, string>> = LETTER) =>
  store.redis.xAdd("dead", id, letter);

const letters = async () => (await store.redis.xRange("dead", "-", "+")) ?? [];
const ids = async () => (await letters()).map(({ id }) => id);

describe("redrive.lua", () => {
  const KEYS = ["dead", "redriven", "retries", "ages"];

  /** @returns 1 = redriven, now or before */
  const redrive = (id: string, group = "track", before = 0) =>
    run<number>(store.redis, script(redriveSource), KEYS, [
      id,
      group,
      ...[NOW_MS, before].map(String),
    ]);

  test("queues a letter for its group, due at once, with the age of its entry", async () => {
    await put(ONE);
    await put(TWO);
    expect(await redrive(ONE)).toBe(1);
    const value = JSON.stringify({ letter: ONE, id: "70-3", entry: LETTER.entry });
    const [retry] = await store.redis.zRangeWithScores("retries", 0, -1);
    expect(JSON.parse(retry?.value ?? "")).toEqual(JSON.parse(value));
    expect(retry?.score).toBe(0);
    expect(await store.redis.zRangeWithScores("ages", 0, -1)).toEqual([
      { value: retry?.value ?? "", score: 70 },
    ]);
    expect(await ids()).toEqual([TWO]);
    expect(await store.redis.zRangeWithScores("redriven", 0, -1)).toEqual([
      { value: ONE, score: NOW_MS },
    ]);
  });

  test("queues two letters of one entry separately", async () => {
    for (const id of [ONE, TWO]) await put(id);
    for (const id of [ONE, TWO]) expect(await redrive(id)).toBe(1);
    expect([await store.redis.zCard("retries"), await store.redis.zCard("ages")]).toEqual([2, 2]);
  });

  test("does nothing the second time", async () => {
    await put(ONE);
    expect([await redrive(ONE), await redrive(ONE, "")]).toEqual([1, 1]);
    expect([await store.redis.zCard("retries"), await store.redis.zCard("redriven")]).toEqual([
      1, 1,
    ]);
  });

  test("forgets letters redriven up to the given time, and keeps later ones", async () => {
    await store.redis.zAdd("redriven", [
      { value: "10-0", score: 999 },
      { value: "11-0", score: 1_000 },
      { value: "12-0", score: 1_001 },
    ]);
    await put(ONE);
    expect(await redrive(ONE, "track", 1_000)).toBe(1);
    expect(await store.redis.zRange("redriven", 0, -1)).toEqual(["12-0", ONE]);
    expect([await redrive("11-0"), await redrive("12-0")]).toEqual([0, 1]);
  });

  test.each([
    ["does not exist", TWO, {}],
    ["belongs to another group", ONE, { group: "webhooks" }],
    ["has an empty entry id", ONE, { id: "" }],
  ])("does nothing for a letter that %s", async (_, id, fault) => {
    await put(ONE, { ...LETTER, ...fault });
    expect(await redrive(id)).toBe(0);
    expect([await ids(), await store.redis.keys("*")]).toEqual([[ONE], ["dead"]]);
  });

  test("does nothing for a letter that has no entry id", async () => {
    const { id: _, ...rest } = LETTER;
    await put(ONE, rest);
    expect(await redrive(ONE)).toBe(0);
    expect(await store.redis.keys("*")).toEqual(["dead"]);
  });
});

describe("discard.lua", () => {
  /** @returns 1 = discarded */
  const discard = (id: string, field = "discarded") =>
    run<number>(store.redis, script(discardSource), ["dead", "ledger"], [id, field]);

  test("deletes a letter, and counts it once in its ledger field", async () => {
    for (const id of [ONE, TWO]) await put(id);
    expect([await discard(ONE), await discard(ONE)]).toEqual([1, 0]);
    expect([await ids(), await store.redis.hGetAll("ledger")]).toEqual([[TWO], { discarded: "1" }]);
    expect(await discard(TWO)).toBe(1);
    expect(await store.redis.hGetAll("ledger")).toEqual({ discarded: "2" });
  });

  test("leaves the ledger alone for a letter that no field counts", async () => {
    await put(ONE);
    expect(await discard(ONE, "")).toBe(1);
    expect(await store.redis.exists(["dead", "ledger"])).toBe(1);
    expect(await ids()).toEqual([]);
  });

  test("fails if the ledger cannot count it, and keeps the letter", async () => {
    await put(ONE);
    await store.redis.hSet("ledger", "discarded", "many");
    await expect(discard(ONE)).rejects.toThrow(/no number/);
    expect(await ids()).toEqual([ONE]);
  });
});

describe("replace-letter.lua", () => {
  /** @returns 1 = replaced */
  const replace = (id: string, entry: string) =>
    run<number>(store.redis, script(replaceLetterSource), ["dead"], [id, entry]);

  test("appends the letter with its new entry, all else unchanged", async () => {
    for (const id of [ONE, TWO]) await put(id);
    expect(await replace(ONE, '{"e":"y"}')).toBe(1);
    const [kept, replaced, ...others] = await letters();
    expect([kept?.id, kept?.message]).toEqual([TWO, LETTER]);
    expect(replaced?.message).toEqual({ ...LETTER, entry: '{"e":"y"}' });
    expect(others).toEqual([]);
  });

  test("does nothing for a letter that does not exist", async () => {
    await put(TWO);
    expect(await replace(ONE, "{}")).toBe(0);
    expect((await letters()).map(({ message }) => message)).toEqual([LETTER]);
  });
});

describe("replace-retry.lua", () => {
  /** @returns 1 = replaced */
  const replace = (text: string, next: string) =>
    run<number>(store.redis, script(replaceRetrySource), ["retries", "ages"], [text, next]);

  const waiting = async () => [
    await store.redis.zRangeWithScores("retries", 0, -1),
    await store.redis.zRangeWithScores("ages", 0, -1),
  ];

  test("gives the new text the due time and age of the old one", async () => {
    await store.redis.zAdd("retries", [
      { value: "old", score: 9 },
      { value: "other", score: 8 },
    ]);
    await store.redis.zAdd("ages", [
      { value: "old", score: 3 },
      { value: "other", score: 2 },
    ]);
    expect(await replace("old", "new")).toBe(1);
    const standing = [
      [
        { value: "other", score: 8 },
        { value: "new", score: 9 },
      ],
      [
        { value: "other", score: 2 },
        { value: "new", score: 3 },
      ],
    ];
    expect(await waiting()).toEqual(standing);
    expect(await replace("old", "newer")).toBe(0);
    expect(await waiting()).toEqual(standing);
  });

  test.each(["retries", "ages"])("does nothing if the text is only in %s", async (key) => {
    await store.redis.zAdd(key, { value: "old", score: 9 });
    const before = await waiting();
    expect(await replace("old", "new")).toBe(0);
    expect(await waiting()).toEqual(before);
  });
});
