/** The scripts that fill search columns, called one at a time: row log entries, the rows they name, bitmaps and blocks. */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { binary, run, script } from "#core/platform/redis/client.ts";
import readBlocksSource from "#core/search/store/read-blocks.lua" with { type: "text" };
import readColumnsSource from "#core/search/store/read-columns.lua" with { type: "text" };
import { openTestRedis } from "#test/support/servers/servers.ts";

const { redis, stop } = await openTestRedis();
beforeEach(() => redis.flushAll());
afterAll(stop);

const textOf = (bytes: Buffer | null | undefined) => bytes?.toString("latin1") ?? null;

describe("read-columns.lua", () => {
  const ROWS_PER_BLOCK = 4;
  const ZEROS = "\0".repeat(16);

  /** A row of a channel; its rank tells it from the others. */
  const row = (channel: string, rank: number) => `${channel}${rank}`.padEnd(16, ".");

  async function putBlock(channel: string, block: number, rows = ROWS_PER_BLOCK): Promise<void> {
    const ranks = Array.from({ length: rows }, (_, at) => block * ROWS_PER_BLOCK + at);
    await redis.set(`${channel}:${block}`, ranks.map((rank) => row(channel, rank)).join(""));
  }

  async function putLog(channel: string, ranks: readonly number[], gone = 0): Promise<void> {
    const bytes = Buffer.alloc(8 + 4 * ranks.length);
    bytes.writeDoubleLE(gone);
    for (const [at, rank] of ranks.entries()) bytes.writeUInt32LE(rank, 8 + 4 * at);
    await redis.set(`${channel}:log`, bytes);
  }

  function ranksOf(bytes: Buffer | null | undefined): number[] | null {
    if (!bytes) return null;
    const ranks = Array.from({ length: Math.floor(bytes.length / 4) }, (_, at) =>
      bytes.readUInt32LE(4 * at),
    );
    return bytes.length % 4 === 0 ? ranks : [...ranks, Number.NaN];
  }

  /** A channel, how many entries of its log are known, and the blocks that may have changed. */
  type Known = readonly [channel: string, known: number, ...blocks: number[]];

  async function read(
    channels: readonly Known[],
    { capacity = 100, again = 2, bitmaps = [] as readonly string[] } = {},
  ) {
    const keys = [
      ...channels.map(([channel]) => `${channel}:log`),
      ...bitmaps,
      ...channels.flatMap(([channel, _, ...blocks]) => blocks.map((at) => `${channel}:${at}`)),
    ];
    const numbers = [
      ...[ROWS_PER_BLOCK, capacity, again, channels.length, bitmaps.length],
      ...channels.flatMap(([, known, ...blocks]) => [known, blocks.length, ...blocks]),
    ];
    const args = numbers.map(String);
    const readScript = script(readColumnsSource);
    const reply = await run<(Buffer | null)[]>(redis, readScript, keys, args, binary(redis));
    const own = channels.map((_, channel) => {
      const [count, before, entries, rows] = reply.slice(4 * channel, 4 * channel + 4);
      return {
        count: textOf(count),
        again: ranksOf(before),
        entries: ranksOf(entries),
        rows: rows && [...rows.toString("latin1").matchAll(/.{16}/gs)].map(([one]) => one),
      };
    });
    return { channels: own, bitmaps: reply.slice(4 * channels.length).map(textOf) };
  }

  const readOne = async (...known: Known) => (await read([known])).channels[0];

  test("returns new entries, and each row they name once, in order of first appearance", async () => {
    for (const block of [0, 1]) await putBlock("a", block);
    await putLog("a", [0, 5, 2, 5, 1, 2, 7]);
    expect(await readOne("a", 2, 1, 0)).toEqual({
      count: "7",
      again: [0, 5],
      entries: [2, 5, 1, 2, 7],
      rows: [row("a", 2), row("a", 5), row("a", 1), row("a", 7)],
    });
    expect(await readOne("a", 6, 1)).toEqual({
      count: "7",
      again: [1, 2],
      entries: [7],
      rows: [row("a", 7)],
    });
  });

  test("reads a trimmed log from its first remaining entry on", async () => {
    for (const block of [0, 1]) await putBlock("a", block);
    await putLog("a", [4, 5, 6], 10);
    const nothing = { count: "13", again: null, entries: [], rows: [] };
    expect(await readOne("a", 9, 0, 1)).toEqual(nothing);
    const rows = [4, 5, 6].map((rank) => row("a", rank));
    const answer = (again: number[], entries: number[]) => ({
      count: "13",
      again,
      entries,
      rows: rows.slice(3 - entries.length),
    });
    expect(await readOne("a", 10, 0, 1)).toEqual(answer([], [4, 5, 6]));
    expect(await readOne("a", 11, 0, 1)).toEqual(answer([4], [5, 6]));
    expect(await readOne("a", 12, 0, 1)).toEqual(answer([4, 5], [6]));
    expect(await readOne("a", 13, 0, 1)).toEqual(answer([5, 6], []));
    expect(await readOne("a", 14, 0, 1)).toEqual(nothing);
    expect(await readOne("a", -1)).toEqual(nothing);
  });

  test("returns no entries for an empty or missing log", async () => {
    await putLog("b", []);
    for (const channel of ["a", "b"]) {
      expect(await readOne(channel, 0)).toEqual({ count: "0", again: [], entries: [], rows: [] });
      expect(await readOne(channel, -1)).toMatchObject({ count: "0", again: null });
      expect(await readOne(channel, 1)).toMatchObject({ count: "0", again: null });
    }
  });

  test("shares the limit on entries among the channels of a call", async () => {
    for (const channel of ["a", "b", "c"]) {
      await putBlock(channel, 0);
      await putLog(channel, [1, 3]);
    }
    const channels: Known[] = [
      ["none", 0],
      ["a", 0, 0],
      ["b", 0, 0],
      ["c", 0, 0],
    ];
    const entries = async (capacity: number) =>
      (await read(channels, { capacity })).channels.map((one) => one.entries);
    expect(await entries(1)).toEqual([[], [1], [], []]);
    expect(await entries(3)).toEqual([[], [1, 3], [1], []]);
    expect(await entries(6)).toEqual([[], [1, 3], [1, 3], [1, 3]]);
    const [, a, b, c] = (await read(channels, { capacity: 3 })).channels;
    expect([a?.rows, b?.rows]).toEqual([[row("a", 1), row("a", 3)], [row("b", 1)]]);
    expect(c).toEqual({ count: "2", again: [], entries: [], rows: [] });
    channels[1] = ["a", 1, 0];
    expect(await entries(2)).toEqual([[], [3], [1], []]);
  });

  test("returns no rows if one of them is in a block that was not given", async () => {
    for (const block of [0, 1]) await putBlock("a", block);
    await putLog("a", [3, 4]);
    const entries = { count: "2", again: [], entries: [3, 4] };
    expect(await readOne("a", 0, 0)).toEqual({ ...entries, rows: null });
    expect(await readOne("a", 0, 1)).toEqual({ ...entries, rows: null });
    expect(await readOne("a", 0, 0, 1)).toEqual({ ...entries, rows: [row("a", 3), row("a", 4)] });
  });

  test("returns zeros for rows of a dropped block, and for rows past a block's end", async () => {
    await redis.set("a:0", "\0");
    await putBlock("a", 1, 2);
    await putLog("a", [0, 3, 5, 6]);
    const answer = await readOne("a", 0, 0, 1);
    expect(answer?.rows).toEqual([ZEROS, ZEROS, row("a", 5), ZEROS]);
  });

  test("returns bitmaps after the channels, null for a missing one", async () => {
    await redis.mSet({ red: "\x40", blue: "\x01\x02" });
    await putBlock("a", 0);
    await putLog("a", [2]);
    const channels: Known[] = [
      ["a", 0, 0],
      ["b", 0],
    ];
    const answer = await read(channels, { bitmaps: ["red", "green", "blue"] });
    expect(answer.channels[0]?.rows).toEqual([row("a", 2)]);
    expect(answer.bitmaps).toEqual(["\x40", null, "\x01\x02"]);
    expect((await read([], { bitmaps: ["blue"] })).bitmaps).toEqual(["\x01\x02"]);
  });
});

test("read-blocks.lua returns each block whole, and null for a missing one", async () => {
  await redis.mSet({ first: "rows", third: "\0" });
  const names = ["first", "second", "third"];
  const reply = await run<(string | null)[]>(redis, script(readBlocksSource), names, []);
  expect(reply).toEqual(["rows", null, "\0"]);
});
