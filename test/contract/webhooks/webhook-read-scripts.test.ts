/** The scripts that only read, called one at a time: heads of queues, deliveries to be sent, a shipment at one moment. */
import { beforeEach, describe, expect, test } from "bun:test";
import { run, script } from "#core/platform/redis/client.ts";
import readDeliveriesSource from "#core/webhooks/store/deliveries/read-deliveries.lua" with {
  type: "text",
};
import readQueuesSource from "#core/webhooks/store/deliveries/read-queues.lua" with {
  type: "text",
};
import readMomentSource from "#core/webhooks/store/read-moment.lua" with { type: "text" };
import { forAll } from "#test/support/for-all.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const store = forAll(openTestRedis);
beforeEach(() => store.redis.flushAll());

describe("read-queues.lua", () => {
  const read = (most: number, endpoints = ["a", "b"]) =>
    run<string[][]>(
      store.redis,
      script(readQueuesSource),
      endpoints.flatMap((id) => [`queue:${id}`, `retries:${id}`]),
      [String(most)],
    );

  test("returns first attempts before retries, endpoint by endpoint, up to the limit", async () => {
    await store.redis.rPush("queue:a", ["a1", "a2"]);
    await store.redis.zAdd("retries:a", [
      { value: "r1", score: 5 },
      { value: "r2", score: 6 },
    ]);
    await store.redis.rPush("queue:b", ["b1", "b2"]);
    await store.redis.zAdd("retries:b", { value: "r3", score: 1 });
    expect(await read(1)).toEqual([["a1"], [], [], []]);
    expect(await read(2)).toEqual([["a1", "a2"], [], [], []]);
    expect(await read(3)).toEqual([["a1", "a2"], ["r1"], [], []]);
    expect(await read(4)).toEqual([["a1", "a2"], ["r1", "r2"], [], []]);
    expect(await read(5)).toEqual([["a1", "a2"], ["r1", "r2"], ["b1"], []]);
    expect(await read(100)).toEqual([["a1", "a2"], ["r1", "r2"], ["b1", "b2"], ["r3"]]);
  });

  test("an endpoint without deliveries has two empty lists", async () => {
    await store.redis.zAdd("retries:b", { value: "r1", score: 1 });
    expect(await read(10)).toEqual([[], [], [], ["r1"]]);
    expect(await read(10, [])).toEqual([]);
  });
});

describe("read-deliveries.lua", () => {
  const words = (endpoint: string, event: string) => `${endpoint} ${event} 7 1 every_event 1000`;

  /** @returns five lines for each */
  async function read(...ids: readonly string[]): Promise<string[][]> {
    const text = await run<string>(store.redis, script(readDeliveriesSource), [...ids], []);
    const lines = text.split("\n");
    return ids.map((_, at) => lines.slice(5 * at, 5 * at + 5));
  }

  test("a delivery has its generation, its attempts, its words and its fact", async () => {
    const stored = { g: "3", n: "2", i: `${words("a", "evt_1")}\n{"fact":1}`, a: "[[1]]" };
    await store.redis.hSet("one", stored);
    expect(await read("one")).toEqual([["3", "2", words("a", "evt_1"), '{"fact":1}', "[[1]]"]]);
  });

  test("one that was never sent is of the first generation, without attempts", async () => {
    await store.redis.hSet("new", { i: `${words("a", "evt_1")}\n{}`, s: "queued" });
    expect(await read("new")).toEqual([["1", "0", words("a", "evt_1"), "{}", "[]"]]);
  });

  test("the fact of an event is sent with its first delivery only", async () => {
    await store.redis.hSet("a1", { i: `${words("a", "evt_1")}\n{"fact":1}` });
    await store.redis.hSet("b1", { i: `${words("b", "evt_1")}\n{"fact":1}` });
    await store.redis.hSet("a2", { i: `${words("a", "evt_2")}\n{"fact":2}` });
    const found = await read("a1", "a2", "b1", "a1");
    expect(found.map(([, , frozen, fact]) => [frozen, fact])).toEqual([
      [words("a", "evt_1"), '{"fact":1}'],
      [words("a", "evt_2"), '{"fact":2}'],
      [words("b", "evt_1"), ""],
      [words("a", "evt_1"), ""],
    ]);
  });

  test("returns a missing delivery as empty, in its place", async () => {
    await store.redis.hSet("there", { g: "2", n: "1", i: `${words("a", "evt_1")}\n{}` });
    expect(await read("gone", "there", "gone too")).toEqual([
      ["1", "0", "", "", "[]"],
      ["2", "1", words("a", "evt_1"), "{}", "[]"],
      ["1", "0", "", "", "[]"],
    ]);
  });
});

describe("read-moment.lua", () => {
  const read = (...channels: readonly number[]) =>
    run<string[][]>(
      store.redis,
      script(readMomentSource),
      ["shipment", "messages", "decisions", ...channels.map((id) => `index:${id}`)],
      ["member"],
    );

  test("returns a shipment of one of the channels whole, and nothing of another channel's", async () => {
    await store.redis.hSet("shipment", { st: "IN_TRANSIT" });
    await store.redis.rPush("messages", ["first", "second"]);
    await store.redis.hSet("decisions", { evt_1: "[]" });
    await store.redis.zAdd("index:2", { value: "member", score: 0 });
    await store.redis.zAdd("index:3", { value: "other", score: 0 });
    const whole = [
      ["st", "IN_TRANSIT"],
      ["first", "second"],
      ["evt_1", "[]"],
    ];
    expect(await read(2)).toEqual(whole);
    expect(await read(1, 3, 2)).toEqual(whole);
    expect(await read(2, 3)).toEqual(whole);
    expect(await read(1, 3)).toEqual([[], [], []]);
    expect(await read()).toEqual([[], [], []]);
  });
});
