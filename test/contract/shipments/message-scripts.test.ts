/** The message scripts, called one at a time: messages to recipients are accepted, and their outcomes recorded. */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import acceptSource from "#core/merchants/store/accept-messages.lua" with { type: "text" };
import recordSource from "#core/merchants/store/record-message.lua" with { type: "text" };
import { run, script } from "#core/platform/redis/client.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const NOW_MS = 1_800_000_000_000;

const { redis, stop } = await openTestRedis();
beforeEach(() => redis.flushAll());
afterAll(stop);

describe("accept-messages.lua", () => {
  const [ACCEPTED, FULL, REPEATED] = [1, 0, -1];

  /**
   * @param messages each "id shipment topic"
   * @param onceMs how long a topic is not repeated; 0 = never repeated
   */
  function accept(
    messages: readonly string[],
    { atMs = 0, limit = 100, onceMs = 0 } = {},
  ): Promise<number[]> {
    const keys = ["waiting", "leases"];
    const args = [NOW_MS + atMs, limit].map(String);
    for (const message of messages) {
      const [id = "", shipment = "", topic = ""] = message.split(" ");
      keys.push(`topics:${shipment}`, `message:${id}`);
      args.push(id, topic, String(onceMs), `{"n":"${id}"}`);
    }
    return run<number[]>(redis, script(acceptSource), keys, args);
  }

  const queue = () => redis.zRangeWithScores("waiting", 0, -1);
  const queued = async () => (await queue()).map(({ value }) => value);
  const topics = (shipment: string) => redis.hGetAll(`topics:${shipment}`);

  test("queues messages as not yet tried, and remembers their topics", async () => {
    expect(await accept(["a 17 shipped", "b 33 shipped"])).toEqual([ACCEPTED, ACCEPTED]);
    expect(await redis.hGetAll("message:a")).toEqual({ m: '{"n":"a"}', n: "0" });
    expect(await redis.hGetAll("message:b")).toEqual({ m: '{"n":"b"}', n: "0" });
    expect(await queue()).toEqual(["a", "b"].map((value) => ({ value, score: NOW_MS })));
    for (const shipment of ["17", "33"]) {
      expect(await topics(shipment)).toEqual({ shipped: String(NOW_MS) });
    }
  });

  test("never sends a topic to a shipment's recipient twice, not even in one call", async () => {
    expect(await accept(["a 17 shipped", "b 17 shipped"])).toEqual([ACCEPTED, REPEATED]);
    const atMs = NOW_MS;
    const later = ["c 17 shipped", "d 17 delivered", "e 33 shipped"];
    expect(await accept(later, { atMs })).toEqual([REPEATED, ACCEPTED, ACCEPTED]);
    expect(await queued()).toEqual(["a", "d", "e"]);
    expect(await redis.exists(["message:b", "message:c"])).toBe(0);
    const shipped = String(NOW_MS);
    expect(await topics("17")).toEqual({ shipped, delivered: String(NOW_MS + atMs) });
  });

  test("or sends it again after the given time, to the millisecond", async () => {
    const onceMs = 60_000;
    expect(await accept(["a 17 shipped"], { onceMs })).toEqual([ACCEPTED]);
    expect(await accept(["b 17 shipped"], { onceMs, atMs: onceMs - 1 })).toEqual([REPEATED]);
    expect(await accept(["b 17 shipped"], { onceMs, atMs: onceMs })).toEqual([ACCEPTED]);
    expect(await topics("17")).toEqual({ shipped: String(NOW_MS + onceMs) });
  });

  test("accepts nothing for an erased recipient", async () => {
    await redis.hSet("topics:17", { erased: "1" });
    expect(await accept(["a 17 shipped", "b 33 shipped"])).toEqual([REPEATED, ACCEPTED]);
    expect(await queued()).toEqual(["b"]);
    expect(await topics("17")).toEqual({ erased: "1" });
  });

  test("the queue holds 4 messages, leased ones included, and takes no fifth", async () => {
    await redis.zAdd("waiting", { value: "before", score: 1 });
    await redis.zAdd("leases", { value: "taken", score: 1 });
    const messages = ["a 17 shipped", "b 17 shipped", "c 33 shipped", "d 49 shipped"];
    const outcomes = [ACCEPTED, REPEATED, ACCEPTED, FULL];
    expect(await accept(messages, { limit: 4 })).toEqual(outcomes);
    expect(await queued()).toEqual(["before", "a", "c"]);
    expect(await redis.exists(["topics:49", "message:d"])).toBe(0);
    expect(await accept(["a 17 shipped"], { limit: 4 })).toEqual([REPEATED]);
    expect(await accept(["d 49 shipped"], { limit: 5 })).toEqual([ACCEPTED]);
  });
});

describe("record-message.lua", () => {
  const record = (id: string, kept: number) =>
    run<number>(
      redis,
      script(recordSource),
      [`message:${id}`, "notifications"],
      [`sent ${id}`, String(kept)],
    );

  const notifications = () => redis.lRange("notifications", 0, -1);

  test("replaces a message by its outcome, and keeps a shipment's latest 2", async () => {
    for (const id of ["a", "b", "c"]) await redis.hSet(`message:${id}`, { n: 1 });
    expect(await record("a", 2)).toBe(1);
    expect(await record("b", 2)).toBe(1);
    expect(await notifications()).toEqual(["sent b", "sent a"]);
    expect(await record("c", 2)).toBe(1);
    expect(await notifications()).toEqual(["sent c", "sent b"]);
    expect(await redis.keys("message:*")).toEqual([]);
  });

  test("keeps the first outcome of a message, and none of an expired one", async () => {
    await redis.hSet("message:a", { n: 1 });
    expect(await record("a", 2)).toBe(1);
    for (const id of ["a", "b"]) expect(await record(id, 2)).toBe(0);
    expect(await notifications()).toEqual(["sent a"]);
  });
});
