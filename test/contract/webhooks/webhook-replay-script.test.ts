/** replay.lua, one call at a time: what it queues again and keeps, and how a replay of a window moves on. */
import { beforeEach, describe, expect, test } from "bun:test";
import { run, script } from "#core/platform/redis/client.ts";
import replaySource from "#core/webhooks/store/deliveries/replay.lua" with { type: "text" };
import { scoresOf } from "#test/support/data/scores-of.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const store = forAll(openTestRedis);
beforeEach(() => store.redis.flushAll());

/** How long all attempts of a replayed delivery take. */
const LIFE_MS = 1_000_000;
/** How long a delivery stays in the log. */
const LOGGED_MS = 10_000_000;
const NOW_MS = 1_000_000_000;
/** Where the scores of failing endpoints begin. */
const FAILING = 1e15;

interface Ended {
  readonly endpoint?: string;
  readonly state?: string;
  readonly generation?: number;
  readonly createdAtMs?: number;
  readonly expiresInMs?: number;
}

/** A delivery as it is left by its last attempt. */
async function end(id: string, of: Ended = {}): Promise<void> {
  const { endpoint = "a", state = "failed", createdAtMs = NOW_MS, generation } = of;
  const words = `${endpoint} evt_${id} 7 1 every_event ${createdAtMs}`;
  const ended = { s: state, i: `${words}\n{}`, n: "8", d: "5", r: "gave up", a: "[1]" };
  await store.redis.hSet(
    id,
    generation === undefined ? ended : { ...ended, g: String(generation) },
  );
  await store.redis.pExpire(id, of.expiresInMs ?? LOGGED_MS);
  if (state === "failed")
    await store.redis.zAdd(`failed:${endpoint}`, { value: id, score: createdAtMs });
}

interface Item {
  readonly id: string;
  readonly endpoint?: string;
  /** Set if the replay sends only one delivery of it. */
  readonly shipment?: string;
}

interface Step {
  readonly at: string;
  readonly after: string;
  readonly isLast?: boolean;
}

/** @returns the reply for each; none when the step was made by another process */
function replay(items: readonly (string | Item)[], step?: Step): Promise<number[]> {
  const keys = ["ring", "turns", "failing", "ledger"];
  if (step) keys.push("replay", "replays", "served");
  const args = [LIFE_MS, FAILING, NOW_MS, LOGGED_MS].map(String);
  args.push(step?.at ?? "", step?.after ?? "", step?.isLast ? "rpl_1" : "");
  for (const item of items) {
    const { id, endpoint = "a", shipment = "" } = typeof item === "string" ? { id: item } : item;
    keys.push(id, `queue:${endpoint}`, `failed:${endpoint}`, `late:${endpoint}`, `decisions:${id}`);
    args.push(id, endpoint, shipment);
  }
  return run<number[]>(store.redis, script(replaySource), keys, args);
}

const queueOf = (endpoint: string) => store.redis.lRange(`queue:${endpoint}`, 0, -1);
const statesOf = (...ids: readonly string[]) =>
  Promise.all(ids.map((id) => store.redis.hGet(id, "s")));

describe("a delivery that has ended", () => {
  test("is queued as new: next generation, attempts from 1, earlier attempts still shown", async () => {
    await end("d1");
    await end("d2", { state: "delivered", generation: 4 });
    expect(await replay(["d1", "d2"])).toEqual([1, 1]);
    const fresh = { s: "queued", n: "0", d: "", r: "", a: "[1]" };
    const words = (id: string) => `a evt_${id} 7 1 every_event ${NOW_MS}\n{}`;
    expect(await store.redis.hGetAll("d1")).toEqual({ ...fresh, g: "2", i: words("d1") });
    expect(await store.redis.hGetAll("d2")).toEqual({ ...fresh, g: "5", i: words("d2") });
    expect(await queueOf("a")).toEqual(["d1", "d2"]);
  });

  test("is no longer counted and listed as what it was", async () => {
    const before = { "webhook:failed": "5", "webhook:delivered": "3" };
    await store.redis.hSet("ledger", { ...before, "webhook:sent": "9" });
    await end("d1");
    await end("d2");
    await end("d3", { state: "delivered" });
    await end("d4");
    expect(await replay(["d1", "d2", "d3"])).toEqual([1, 1, 1]);
    expect(await store.redis.hGetAll("ledger")).toEqual({
      "webhook:failed": "3",
      "webhook:delivered": "2",
      "webhook:sent": "9",
    });
    expect(await store.redis.zRange("failed:a", 0, -1)).toEqual(["d4"]);
  });

  test("is queued once, behind what waits, and its endpoint behind the others", async () => {
    await store.redis.set("turns", "5");
    await store.redis.rPush("queue:a", "waiting");
    await store.redis.zAdd("failing", { value: "c", score: 1 });
    await store.redis.zAdd("ring", { value: "b", score: 3 });
    await end("a1");
    await end("b1", { endpoint: "b" });
    await end("c1", { endpoint: "c" });
    expect(await replay(["a1", "a1"])).toEqual([1, 0]);
    expect(await queueOf("a")).toEqual(["waiting", "a1"]);
    expect(await scoresOf(store.redis, "ring")).toEqual({ a: 6, b: 3 });
    const others = ["b", "c"].map((endpoint) => ({ id: `${endpoint}1`, endpoint }));
    expect(await replay(others)).toEqual([1, 1]);
    expect([await queueOf("b"), await queueOf("c")]).toEqual([["b1"], ["c1"]]);
    expect(await scoresOf(store.redis, "ring")).toEqual({ a: 6, b: 3, c: FAILING + 7 });
  });

  test("is queued, unlike one that waits or has expired", async () => {
    await end("queued", { state: "queued" });
    await end("waiting", { state: "waiting" });
    await end("ended");
    expect(await replay(["queued", "waiting", "gone", "ended"])).toEqual([0, 0, 0, 1]);
    expect(await statesOf("queued", "waiting", "gone")).toEqual(["queued", "waiting", null]);
    expect(await queueOf("a")).toEqual(["ended"]);
    expect(await store.redis.hGetAll("ledger")).toEqual({ "webhook:failed": "-1" });
    await store.redis.del(["ledger", "ring"]);
    expect(await replay(["queued"])).toEqual([0]);
    expect(await store.redis.exists(["ledger", "ring"])).toBe(0);
  });
});

describe("a replayed delivery", () => {
  const left = (key: string) => store.redis.pTTL(key);
  const decide = async (id: string, expiresInMs: number) => {
    await store.redis.hSet(`decisions:${id}`, { evt: "[]" });
    await store.redis.pExpire(`decisions:${id}`, expiresInMs);
  };

  test("lives as long as its attempts need, and so do the decisions about its shipment", async () => {
    await end("short", { expiresInMs: LIFE_MS / 2 });
    await end("long", { expiresInMs: 2 * LIFE_MS });
    await decide("short", LIFE_MS / 2);
    await decide("long", 2 * LIFE_MS);
    await replay(["short", "long"]);
    for (const key of ["short", "decisions:short"]) {
      expect(await left(key)).toBeWithin(LIFE_MS - 60_000, LIFE_MS + 1);
    }
    for (const key of ["long", "decisions:long"]) {
      expect(await left(key)).toBeWithin(2 * LIFE_MS - 60_000, 2 * LIFE_MS + 1);
    }
  });

  test("that would leave the log sooner stays in it as a late replay", async () => {
    const last = NOW_MS + LIFE_MS - LOGGED_MS;
    await end("seen", { createdAtMs: last });
    await end("late", { createdAtMs: last - 1 });
    expect(await replay(["seen"])).toEqual([1]);
    expect([await store.redis.hGet("seen", "u"), await store.redis.exists("late:a")]).toEqual([
      null,
      0,
    ]);
    expect(await replay(["late"])).toEqual([1]);
    expect(await store.redis.hGet("late", "u")).toBe(String(NOW_MS + LIFE_MS));
    expect(await scoresOf(store.redis, "late:a")).toEqual({ late: last - 1 });
    expect(await left("late:a")).toBeWithin(LIFE_MS - 60_000, LIFE_MS + 1);
  });

  test("replaces late replays that have ended", async () => {
    const over = NOW_MS - LOGGED_MS - LIFE_MS;
    await store.redis.zAdd("late:a", [
      { value: "over", score: over },
      { value: "not over", score: over + 1 },
    ]);
    const createdAtMs = NOW_MS - LOGGED_MS + 1;
    await end("late", { createdAtMs });
    await replay(["late"]);
    expect(await scoresOf(store.redis, "late:a")).toEqual({
      "not over": over + 1,
      late: createdAtMs,
    });
  });
});

describe("a replay of a window", () => {
  const start = async (at: string) => {
    await store.redis.hSet("replay", { at, state: "running", queued: "3", passedOver: "1" });
    await store.redis.pExpire("replay", LOGGED_MS);
    await store.redis.sAdd("replays", ["rpl_1", "rpl_2"]);
  };
  const standing = () => store.redis.hGetAll("replay");

  test("takes failed deliveries only, counts them and those it passes over, and moves on", async () => {
    await start("x");
    await end("failed");
    await end("delivered", { state: "delivered" });
    await end("waiting", { state: "waiting" });
    const ids = ["failed", "delivered", "waiting"];
    expect(await replay(ids, { at: "x", after: "y" })).toEqual([1, 0, 0]);
    expect(await statesOf(...ids)).toEqual(["queued", "delivered", "waiting"]);
    expect(await queueOf("a")).toEqual(["failed"]);
    expect(await standing()).toEqual({
      at: "y",
      state: "running",
      queued: "4",
      passedOver: "3",
      older: "0",
    });
    expect(await store.redis.sMembers("replays")).toHaveLength(2);
    expect(await store.redis.exists("served")).toBe(0);
  });

  test("does nothing if another process has made the step", async () => {
    await start("y");
    await end("d1");
    expect(await replay(["d1"], { at: "x", after: "z", isLast: true })).toEqual([]);
    expect(await standing()).toEqual({ at: "y", state: "running", queued: "3", passedOver: "1" });
    expect(await statesOf("d1")).toEqual(["failed"]);
    await store.redis.del("replay");
    expect(await replay(["d1"], { at: "x", after: "z" })).toEqual([]);
    expect(await store.redis.exists(["replay", "queue:a", "ledger"])).toBe(0);
  });

  test("queues one delivery of each shipment, and remembers those served until its last step", async () => {
    await start("x");
    for (const id of ["d1", "d2", "d3", "d4", "d5"]) await end(id);
    const of = (id: string, shipment: string) => ({ id, shipment });
    const step = { at: "x", after: "y" };
    expect(await replay([of("d1", "7"), of("d2", "7"), of("d3", "8")], step)).toEqual([1, 0, 1]);
    expect(await statesOf("d2")).toEqual(["failed"]);
    expect((await store.redis.sMembers("served")).toSorted()).toEqual(["7", "8"]);
    expect(await store.redis.pTTL("served")).toBeWithin(LOGGED_MS - 60_000, LOGGED_MS + 1);
    const last = { at: "y", after: "z", isLast: true };
    expect(await replay([of("d4", "8"), of("d5", "9")], last)).toEqual([0, 1]);
    expect(await standing()).toEqual({
      at: "z",
      state: "done",
      queued: "6",
      passedOver: "3",
      older: "2",
    });
    expect(await store.redis.sMembers("replays")).toEqual(["rpl_2"]);
    expect(await store.redis.exists("served")).toBe(0);
  });

  test("is done when it finds nothing more", async () => {
    await start("x");
    expect(await replay([], { at: "x", after: "x", isLast: true })).toEqual([]);
    expect(await standing()).toEqual({
      at: "x",
      state: "done",
      queued: "3",
      passedOver: "1",
      older: "0",
    });
    expect(await store.redis.exists(["ring", "turns", "ledger"])).toBe(0);
  });
});
