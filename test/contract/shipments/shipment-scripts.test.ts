/** Small shipment scripts, called one at a time: remaps, unmapped codes, release requests and whole hashes. */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { run, script } from "#core/platform/redis/client.ts";
import askReleaseSource from "#core/shipments/store/ask-release.lua" with { type: "text" };
import { splitChanges } from "#core/shipments/store/change-log.ts";
import readHashesSource from "#core/shipments/store/read-hashes.lua" with { type: "text" };
import forgetSource from "#core/statuses/store/forget-unmapped.lua" with { type: "text" };
import saveSource from "#core/statuses/store/save-remap.lua" with { type: "text" };
import { openTestRedis } from "#test/support/servers/servers.ts";

const { redis, stop } = await openTestRedis();
beforeEach(() => redis.flushAll());
afterAll(stop);

describe("save-remap.lua", () => {
  const RUNNING = { order: "{}", state: "running", progress: "before" };

  /** @returns 1 = saved, 0 = the lease was lost */
  function save({ owner = "me", progress = "", finishedAtMs = "" }): Promise<number> {
    const args = [owner, "rmp_1", progress, finishedAtMs];
    return run<number>(redis, script(saveSource), ["lease", "remap", "open"], args);
  }

  const remap = () => redis.hGetAll("remap");
  const open = () => redis.zRange("open", 0, -1);

  beforeEach(async () => {
    await redis.set("lease", "me");
    await redis.hSet("remap", RUNNING);
    await redis.zAdd("open", [
      { value: "rmp_1", score: 1 },
      { value: "rmp_2", score: 2 },
    ]);
  });

  test("saves progress, and keeps the remap open", async () => {
    expect(await save({ progress: "after" })).toBe(1);
    expect(await remap()).toEqual({ ...RUNNING, progress: "after" });
    expect(await open()).toEqual(["rmp_1", "rmp_2"]);
  });

  test("closes a finished remap, and keeps its progress", async () => {
    expect(await save({ finishedAtMs: "17" })).toBe(1);
    expect(await remap()).toEqual({ ...RUNNING, state: "done", finishedAtMs: "17" });
    expect(await open()).toEqual(["rmp_2"]);
  });

  test("saves nothing for a process that has lost the lease", async () => {
    const both = { progress: "after", finishedAtMs: "17" };
    expect(await save({ owner: "you", ...both })).toBe(0);
    await redis.del("lease");
    expect(await save(both)).toBe(0);
    expect([await remap(), await open()]).toEqual([RUNNING, ["rmp_1", "rmp_2"]]);
  });

  test("closes a deleted remap without recreating it", async () => {
    await redis.del("remap");
    expect(await save({ progress: "after", finishedAtMs: "17" })).toBe(1);
    expect([await remap(), await open()]).toEqual([{}, ["rmp_2"]]);
  });
});

describe("forget-unmapped.lua", () => {
  /** @returns how many lists the shipment was in */
  function forget(id: number, ...codes: readonly string[]): Promise<number> {
    const keys = ["codes", ...codes.flatMap((code) => [`counts:${code}`, `shipments:${code}`])];
    return run<number>(redis, script(forgetSource), keys, [String(id), ...codes]);
  }

  async function list(code: string, ...ids: readonly number[]): Promise<void> {
    await redis.sAdd("codes", code);
    await redis.hSet(`counts:${code}`, "events", "9");
    for (const id of ids) await redis.zAdd(`shipments:${code}`, { score: id, value: String(id) });
  }

  /** Codes that are listed, each with its shipments; those with counts. */
  async function standing() {
    const lists: Record<string, string[]> = {};
    const codes = (await redis.sMembers("codes")).toSorted();
    for (const code of codes) lists[code] = await redis.zRange(`shipments:${code}`, 0, -1);
    return [lists, (await redis.keys("counts:*")).toSorted()];
  }

  test("removes a shipment from its lists, and a code with its last shipment", async () => {
    await list("X", 1);
    await list("Y", 1, 2);
    await list("Z", 1);
    await list("W", 2);
    expect(await forget(1, "X", "Y")).toBe(2);
    expect(await standing()).toEqual([
      { W: ["2"], Y: ["2"], Z: ["1"] },
      ["counts:W", "counts:Y", "counts:Z"],
    ]);
    expect(await forget(1, "Y", "W", "Z")).toBe(1);
    expect(await standing()).toEqual([{ W: ["2"], Y: ["2"] }, ["counts:W", "counts:Y"]]);
    expect(await redis.hGetAll("counts:W")).toEqual({ events: "9" });
  });
});

describe("ask-release.lua", () => {
  const ask = (...shipments: ReadonlyArray<readonly [id: number, meta: string]>) =>
    run<number>(redis, script(askReleaseSource), ["log", "counts"], shipments.flat().map(String));

  test("appends one entry with an item for each shipment, like those of creations", async () => {
    expect(await ask([17, '{"a":1}'], [33, '{"b":2}'], [49, '{"c":3}'])).toBe(3);
    const entries = ((await redis.xRange("log", "-", "+")) ?? []).map(({ message }) => message);
    expect(entries).toHaveLength(1);
    expect(entries.flatMap(splitChanges)).toEqual([
      { s: "17", created: '{"a":1}' },
      { s: "33", created: '{"b":2}' },
      { s: "49", created: '{"c":3}' },
    ]);
    expect(await redis.hGetAll("counts")).toEqual({ logged: "3" });
    expect(await ask([65, "{}"])).toBe(1);
    expect(await redis.hGetAll("counts")).toEqual({ logged: "4" });
  });

  test.each([
    ["no shipment", []],
    ["an invalid shipment id", ["0", "{}"]],
    ["a shipment without meta", ["17", ""]],
    ["half a shipment", ["17", "{}", "33"]],
    ["a meta of two lines, which would be two shipments", ["17", "{\n}"]],
  ])("rejects %s, and appends nothing", async (_, args) => {
    const asked = run(redis, script(askReleaseSource), ["log", "counts"], args);
    await expect(asked).rejects.toThrow(/a shipment/);
    expect(await redis.keys("*")).toEqual([]);
  });
});

describe("read-hashes.lua", () => {
  test("reads each hash whole, and a missing one as empty", async () => {
    await redis.hSet("a", { v: "1", st: "x" });
    await redis.hSet("c", { v: "2" });
    const rows = await run<string[][]>(redis, script(readHashesSource), ["a", "b", "c"], []);
    expect(rows).toEqual([["v", "1", "st", "x"], [], ["v", "2"]]);
  });
});
