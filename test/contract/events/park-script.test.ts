/** What one call of park.lua leaves and answers (document 2, "Unknown-tracking set-aside"). */
import { beforeEach, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import parkSource from "#core/events/store/park.lua" with { type: "text" };
import parkedReferences from "#core/events/store/parts/parked-references.lua" with { type: "text" };
import { run } from "#core/platform/redis/client.ts";
import { scriptOfParts } from "#core/platform/redis/script-parts.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const parkScript = scriptOfParts(parkSource, { "parked-references": parkedReferences });

const DAY_MS = 86_400_000;
const LIFE_MS = 7 * DAY_MS;
const TODAY = 20_000;
/** The first moment of a day. */
const NOW_MS = TODAY * DAY_MS;

const [PARKED, CHANGED, FULL, DISPLACED, NOT_LOOKED_AT] = [1, 0, 2, 3, 4];

const store = forAll(openTestRedis);
beforeEach(() => store.redis.flushAll());

interface Sent {
  /** Reference and fact key, "a:1". */
  readonly of: string;
  readonly index?: number;
  readonly text?: string;
  readonly judged?: string;
}

/** @returns the reply for each */
function park(
  events: readonly (string | Sent)[],
  { nowMs = NOW_MS, perReference = 100, perPartition = 1_000, looks = 2 } = {},
): Promise<number[]> {
  const keys = ["counts", "due"];
  const args = [nowMs, LIFE_MS, perReference, perPartition, looks].map(String);
  for (const one of events) {
    const { of, index = 0, text = "{}", judged = "" } = typeof one === "string" ? { of: one } : one;
    const [reference = "", factKey = ""] = of.split(":");
    keys.push(`reference:${reference}`, `parked:${reference}`);
    args.push(factKey, String(index), text, judged);
  }
  return run<number[]>(store.redis, parkScript, keys, args);
}

const parked = (reference: string) => store.redis.hGetAll(`parked:${reference}`);
const keysOf = async (reference: string) => Object.keys(await parked(reference)).toSorted();

/** Days on which events were sent last, counted from today. */
async function countsByDay(): Promise<Record<string, number>> {
  const counts = Object.entries(await store.redis.hGetAll("counts"));
  const days = counts.map(([day, count]) => [Number(day) - TODAY, Number(count)] as const);
  return Object.fromEntries(days.filter(([, count]) => count !== 0));
}

const digest = (text: string) => createHash("sha1").update(text).digest("hex");

test("events are kept by reference, counted on their day, and due when the first is over", async () => {
  const events = [{ of: "a:1", index: 3, text: '{"n":1}' }, "a:2", "b:3"];
  expect(await park(events)).toEqual([PARKED, PARKED, PARKED]);
  expect(await parked("a")).toEqual({ 1: `[${NOW_MS},3,{"n":1}]`, 2: `[${NOW_MS},0,{}]` });
  expect(await parked("b")).toEqual({ 3: `[${NOW_MS},0,{}]` });
  expect(await countsByDay()).toEqual({ 0: 3 });
  const due = ["parked:a", "parked:b"].map((value) => ({ value, score: NOW_MS + LIFE_MS }));
  expect(await store.redis.zRangeWithScores("due", 0, -1)).toEqual(due);
  expect(await park(["a:4"], { nowMs: NOW_MS + DAY_MS })).toEqual([PARKED]);
  expect(await countsByDay()).toEqual({ 0: 3, 1: 1 });
  expect(await store.redis.zRangeWithScores("due", 0, -1)).toEqual(due);
});

test("an event is not parked whose reference has changed since it was judged", async () => {
  await store.redis.set("reference:a", "shipment 1");
  const judged = digest("shipment 1");
  expect(
    await park([
      ...["a:1", { of: "a:2", judged: digest("shipment 2") }, { of: "b:3", judged }],
      { of: "a:4", judged },
    ]),
  ).toEqual([CHANGED, CHANGED, CHANGED, PARKED]);
  expect([await keysOf("a"), await keysOf("b")]).toEqual([["4"], []]);
  expect(await countsByDay()).toEqual({ 0: 1 });
  expect(await store.redis.zRange("due", 0, -1)).toEqual(["parked:a"]);
  await store.redis.del(["parked:a", "due", "counts"]);
  expect(await park(["a:1"])).toEqual([CHANGED]);
  expect(await store.redis.keys("*")).toEqual(["reference:a"]);
});

test("an event that is sent again is replaced, keeps its place, and counts on its last day alone", async () => {
  await park([{ of: "a:1", index: 3, text: '{"n":1}' }, "a:2", "b:3"]);
  for (const days of [1, 2]) {
    const nowMs = NOW_MS + days * DAY_MS;
    const again = { of: "a:1", index: 5, text: `{"again":${days}}` };
    expect(await park([again], { nowMs })).toEqual([PARKED]);
    expect(await parked("a")).toEqual({
      1: `[${NOW_MS},3,{"again":${days}},${nowMs}]`,
      2: `[${NOW_MS},0,{}]`,
    });
    expect(await countsByDay()).toEqual({ 0: 2, [days]: 1 });
  }
  expect(await store.redis.zScore("due", "parked:a")).toBe(NOW_MS + LIFE_MS);
});

test("an event twice in a call takes the room of one", async () => {
  const limits = { perReference: 2, perPartition: 2 };
  expect(await park(["a:1", "a:1", "a:2"], limits)).toEqual([PARKED, PARKED, PARKED]);
  expect(await keysOf("a")).toEqual(["1", "2"]);
  expect(await countsByDay()).toEqual({ 0: 2 });
  const nextDay = { ...limits, nowMs: NOW_MS + DAY_MS };
  expect(await park(["a:1", "a:1"], nextDay)).toEqual([PARKED, PARKED]);
  expect(await countsByDay()).toEqual({ 0: 1, 1: 1 });
});

test("counts of days that are over are deleted, and take no room", async () => {
  const days = { [TODAY - 8]: "5", [TODAY - 9]: "1", [TODAY - 7]: "3", [TODAY - 1]: "2" };
  await store.redis.hSet("counts", days);
  expect(await park(["a:1", "a:2"], { perPartition: 6 })).toEqual([PARKED, FULL]);
  expect(await countsByDay()).toEqual({ [-7]: 3, [-1]: 2, 0: 1 });
  expect(await store.redis.hLen("counts")).toBe(3);
});

test("a reference holds 3 events, and a fourth displaces the one sent the longest ago", async () => {
  const perReference = 3;
  const at = (ms: number) => ({ nowMs: NOW_MS + ms, perReference });
  for (const n of [1, 2, 3]) expect(await park([`a:${n}`], at(n))).toEqual([PARKED]);
  expect(await park(["a:4"], at(4))).toEqual([DISPLACED]);
  expect(await keysOf("a")).toEqual(["2", "3", "4"]);
  expect(await park(["a:2"], at(5))).toEqual([PARKED]);
  expect(await park(["a:5"], at(6))).toEqual([DISPLACED]);
  expect(await keysOf("a")).toEqual(["2", "4", "5"]);
  // Displaced in a call, and parked in it again.
  expect(await park(["a:6", "a:4"], at(7))).toEqual([DISPLACED, DISPLACED]);
  expect(await keysOf("a")).toEqual(["4", "5", "6"]);
  expect(await countsByDay()).toEqual({ 0: 3 });
});

test("of events sent together, the first of the message is displaced", async () => {
  const events = [9, 8, 10, 11].map((index) => ({ of: `a:${index}`, index }));
  const replies = await park(events, { perReference: 3 });
  expect(replies).toEqual([PARKED, PARKED, PARKED, DISPLACED]);
  expect(await keysOf("a")).toEqual(["10", "11", "9"]);
  expect(await countsByDay()).toEqual({ 0: 3 });
});

test("a partition holds 3 events, and takes no fourth unless it replaces one", async () => {
  const limits = { perReference: 1, perPartition: 3 };
  const replies = await park(["a:1", "b:2", "c:3", "d:4"], limits);
  expect(replies).toEqual([PARKED, PARKED, PARKED, FULL]);
  expect(await park(["d:4"], limits)).toEqual([FULL]);
  expect(await store.redis.exists("parked:d")).toBe(0);
  expect(await store.redis.zRange("due", 0, -1)).toEqual(["parked:a", "parked:b", "parked:c"]);
  expect(await park(["a:1", "b:5", "d:4"], limits)).toEqual([PARKED, DISPLACED, FULL]);
  expect(await keysOf("b")).toEqual(["5"]);
  expect(await countsByDay()).toEqual({ 0: 3 });
  expect(await park(["d:4"], { ...limits, perPartition: 4 })).toEqual([PARKED]);
});

test("an event is over after its time to the millisecond, and leaves its room to others", async () => {
  const limits = { perReference: 2, perPartition: 2 };
  await park(["a:1", "a:2"], limits);
  const before = { ...limits, nowMs: NOW_MS + LIFE_MS - 1 };
  expect(await park(["b:3"], before)).toEqual([FULL]);
  expect(await keysOf("a")).toEqual(["1", "2"]);
  const after = { ...limits, nowMs: NOW_MS + LIFE_MS };
  expect(await park([{ of: "a:2", index: 7 }], after)).toEqual([PARKED]);
  expect(await parked("a")).toEqual({ 2: `[${NOW_MS + LIFE_MS},7,{}]` });
  expect(await countsByDay()).toEqual({ 7: 1 });
});

test("an event that is over leaves room for one in its reference", async () => {
  await park(["a:1"]);
  await park(["a:2", { of: "a:3", index: 1 }], { nowMs: NOW_MS + 1 });
  const after = { nowMs: NOW_MS + LIFE_MS, perReference: 3 };
  expect(await park(["a:4", "a:5"], after)).toEqual([PARKED, DISPLACED]);
  expect(await keysOf("a")).toEqual(["3", "4", "5"]);
});

test("an event that is over leaves room for one in its partition, however often it is found", async () => {
  await park(["a:1", "b:1"]);
  await park(["c:1", "c:2"], { nowMs: NOW_MS + 1 });
  // The first event takes the look: the reference of the others is not read whole.
  const after = { nowMs: NOW_MS + LIFE_MS, perPartition: 2, looks: 1 };
  expect(await park(["a:2", "b:1", "b:1"], after)).toEqual([FULL, FULL, FULL]);
  expect([await keysOf("a"), await keysOf("b")]).toEqual([[], []]);
  expect(await countsByDay()).toEqual({ 0: 2 });
});

test("a call reads as many whole references as it may, and leaves others to the next", async () => {
  const limits = { perReference: 1, looks: 1 };
  await park(["a:1", "b:1", "c:1"]);
  // What is known, and what finds room, costs no look.
  expect(await park(["b:1", "d:1", "a:2", "b:2", "a:3", "c:1"], limits)).toEqual([
    ...[PARKED, PARKED, DISPLACED],
    ...[NOT_LOOKED_AT, DISPLACED, PARKED],
  ]);
  expect([await keysOf("a"), await keysOf("b")]).toEqual([["3"], ["1"]]);
  expect(await park(["b:2", "c:2"], { ...limits, looks: 2 })).toEqual([DISPLACED, DISPLACED]);
  expect(await countsByDay()).toEqual({ 0: 4 });
});

test("what is kept expires a life after it was written, and the counts two days later", async () => {
  const isAbout = async (key: string, ms: number) =>
    expect(await store.redis.pTTL(key)).toBeWithin(ms - DAY_MS / 2, ms + 1);
  for (let times = 0; times < 2; times += 1) {
    await park(["a:1"]);
    await isAbout("parked:a", LIFE_MS);
    await isAbout("counts", LIFE_MS + 2 * DAY_MS);
    for (const key of ["parked:a", "counts"]) await store.redis.pExpire(key, DAY_MS);
  }
});
