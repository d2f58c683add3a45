/** The import job scripts, called one at a time: a chunk, a job and its callback are finished. */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import finishChunkSource from "#core/merchants/store/jobs/finish-chunk.lua" with { type: "text" };
import finishJobSource from "#core/merchants/store/jobs/finish-job.lua" with { type: "text" };
import noteCallbackSource from "#core/merchants/store/note-callback.lua" with { type: "text" };
import { run, script } from "#core/platform/redis/client.ts";
import { expectExpiry } from "#test/support/data/expect-expiry.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const NOW_MS = 1_800_000_000_000;
const KEPT_SECONDS = 86_400;
const UNSENT = '{"status":"unsent"}';

const { redis, stop } = await openTestRedis();
beforeEach(() => redis.flushAll());
afterAll(stop);

const jobOf = (id: string) => redis.hGetAll(`job:${id}`);
const waiting = async () => (await redis.sMembers("callbacks")).toSorted();
const due = () => redis.zRangeWithScores("due", 0, -1);

describe("finish-chunk.lua", () => {
  const finish = (chunk: number, result: string, items: number, rejected: number) =>
    run<number>(
      redis,
      script(finishChunkSource),
      ["job:a", "items", "results"],
      [String(chunk), result, ...[items, rejected, KEPT_SECONDS].map(String)],
    );

  test("replaces a chunk's items by its result, and counts it", async () => {
    await redis.hSet("job:a", { processed: 10, failed: 2 });
    await redis.hSet("items", { 0: "[]", 250: "[]" });
    const first = () => finish(0, "one", 250, 3);
    expect(await expectExpiry(redis, "results", KEPT_SECONDS * 1_000, first)).toBe(1);
    expect(await jobOf("a")).toEqual({ processed: "260", failed: "5" });
    expect(await redis.hKeys("items")).toEqual(["250"]);
    expect(await finish(250, "two", 7, 0)).toBe(1);
    expect(await jobOf("a")).toEqual({ processed: "267", failed: "5" });
    expect(await redis.hGetAll("results")).toEqual({ 0: "one", 250: "two" });
  });

  test("keeps the first result of a chunk", async () => {
    await finish(0, "first", 250, 3);
    await redis.hSet("items", { 0: "[]" });
    expect(await finish(0, "second", 250, 3)).toBe(0);
    expect(await redis.hGetAll("results")).toEqual({ 0: "first" });
    expect(await jobOf("a")).toEqual({ processed: "250", failed: "3" });
    expect(await redis.hKeys("items")).toEqual(["0"]);
  });
});

describe("finish-job.lua", () => {
  /** @param callbacks how many may wait; 0 = the job has no callback */
  function finish(
    id: string,
    { status = "completed", error = "", atMs = NOW_MS, callbacks = 0 } = {},
  ): Promise<number> {
    const keys = [`job:${id}`, `items:${id}`, "open", "callbacks", "due"];
    const terms = [atMs, callbacks, KEPT_SECONDS].map(String);
    return run<number>(redis, script(finishJobSource), keys, [id, status, error, ...terms, UNSENT]);
  }

  async function start(...ids: string[]): Promise<void> {
    for (const id of ids) {
      await redis.hSet(`job:${id}`, { status: "processing" });
      await redis.hSet(`items:${id}`, { 0: "[]" });
      await redis.sAdd("open", id);
    }
  }

  test("ends a job once, with its first outcome, and deletes its items", async () => {
    await start("a", "b");
    expect(await finish("a", { status: "failed", error: "gave up" })).toBe(1);
    const failed = { status: "failed", error: "gave up", completedAtMs: String(NOW_MS) };
    expect(await jobOf("a")).toEqual(failed);
    expect(await redis.exists("items:a")).toBe(0);
    expect(await redis.sMembers("open")).toEqual(["b"]);
    expect(await finish("a", { atMs: NOW_MS + 1 })).toBe(0);
    expect(await jobOf("a")).toEqual(failed);
    expect(await jobOf("b")).toEqual({ status: "processing" });
    expect(await redis.exists(["callbacks", "due"])).toBe(0);
  });

  test("deletes what is left of an expired job, without a callback", async () => {
    await start("a");
    await redis.del("job:a");
    expect(await finish("a", { callbacks: 100 })).toBe(0);
    expect(await redis.keys("*")).toEqual([]);
  });

  test("queues its callback, due at once, for as long as the job is kept", async () => {
    await start("a");
    const end = () => finish("a", { callbacks: 100 });
    expect(await expectExpiry(redis, "callbacks", KEPT_SECONDS * 1_000, end)).toBe(1);
    expect(await waiting()).toEqual(["a"]);
    expect(await due()).toEqual([{ value: "a", score: NOW_MS }]);
    expect(await finish("a", { callbacks: 100, atMs: NOW_MS + 1 })).toBe(0);
    expect(await due()).toEqual([{ value: "a", score: NOW_MS }]);
    expect(await jobOf("a")).not.toContainKey("callback");
  });

  test.each([[1], [2]])(
    "queues %d callbacks of a channel, and marks those beyond as unsent",
    async (most) => {
      const ids = ["a", "b", "c"];
      await start(...ids);
      for (const id of ids) expect(await finish(id, { callbacks: most })).toBe(1);
      expect(await waiting()).toEqual(ids.slice(0, most));
      expect((await due()).map(({ value }) => value)).toEqual(ids.slice(0, most));
      expect((await jobOf("c"))["callback"]).toBe(UNSENT);
      await finish("a", { callbacks: most });
      expect(await jobOf("a")).not.toContainKey("callback");
    },
  );

  test("queues no callback that already has an outcome", async () => {
    await redis.hSet("job:a", { status: "completed", callback: "sent" });
    expect(await finish("a", { callbacks: 100 })).toBe(0);
    expect(await jobOf("a")).toEqual({ status: "completed", callback: "sent" });
    expect(await redis.exists(["callbacks", "due"])).toBe(0);
  });

  test("queues the callback of a job that ended without one", async () => {
    await redis.hSet("job:a", { status: "completed" });
    expect(await finish("a", { callbacks: 100 })).toBe(0);
    expect(await waiting()).toEqual(["a"]);
    expect((await due()).map(({ value }) => value)).toEqual(["a"]);
  });
});

describe("note-callback.lua", () => {
  const note = (id: string, outcome: string) =>
    run<number>(redis, script(noteCallbackSource), [`job:${id}`, "callbacks"], [id, outcome]);

  test("keeps the first outcome of a callback, and takes it from the queue", async () => {
    await redis.hSet("job:a", { status: "completed" });
    await redis.sAdd("callbacks", ["a", "b"]);
    expect(await note("a", "sent")).toBe(1);
    expect(await waiting()).toEqual(["b"]);
    expect(await note("a", "failed")).toBe(0);
    expect(await jobOf("a")).toEqual({ status: "completed", callback: "sent" });
  });

  test("takes the callback of an expired job from the queue, without recreating the job", async () => {
    await redis.sAdd("callbacks", ["a", "b"]);
    expect(await note("a", "sent")).toBe(0);
    expect(await waiting()).toEqual(["b"]);
    expect(await jobOf("a")).toEqual({});
  });
});
