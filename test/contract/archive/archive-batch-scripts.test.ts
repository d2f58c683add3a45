/** The scripts of archive batches, called one at a time: batch numbers, absent rows, retirement, row ranks. */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { nextBatches, readArchiveSummary } from "#core/archive/store/archive-summary.ts";
import markSource from "#core/archive/store/mark-batch.lua" with { type: "text" };
import {
  noteForgotten,
  noteForgottenRows,
  noteRetiring,
  REMOVALS_KEPT,
  type RetiredCount,
  readDeletable,
  readForgottenRows,
  readRemovals,
  readRetirement,
  retireBatches,
} from "#core/archive/store/retirement.ts";
import { run, script } from "#core/platform/redis/client.ts";
import { companyKeys, companyPartition } from "#core/platform/redis/keys.ts";
import { LockLost } from "#core/platform/redis/lock.ts";
import numberRowsSource from "#core/shipments/store/number-rows.lua" with { type: "text" };
import { openTestRedis } from "#test/support/servers/servers.ts";

const COMPANY = 3;
const CHANNEL = 7;

const keys = companyKeys(companyPartition(COMPANY));
/** What the archive holds of the company. */
const summary = keys.archived(COMPANY);

const { redis, stop } = await openTestRedis();
beforeEach(() => redis.flushAll());
afterAll(stop);

describe("allocate-batches.lua", () => {
  test("numbers batches consecutively from 1", async () => {
    expect(await nextBatches(redis, COMPANY, 1)).toBe(1);
    expect(await nextBatches(redis, COMPANY, 3)).toBe(2);
    expect(await nextBatches(redis, COMPANY, 1)).toBe(5);
    expect(await redis.hGetAll(summary)).toEqual({ next: "5" });
  });

  test("never reuses the number of a settled batch, even if its allocation was lost", async () => {
    await redis.hSet(summary, { next: "4", batch: "7" });
    expect(await nextBatches(redis, COMPANY, 2)).toBe(8);
    await redis.hSet(summary, { batch: "8" });
    expect(await nextBatches(redis, COMPANY, 1)).toBe(10);
    await redis.hDel(summary, "next");
    expect(await nextBatches(redis, COMPANY, 1)).toBe(9);
  });
});

describe("mark-batch.lua", () => {
  /** @returns how many marks were dropped */
  const mark = (batch: number, ...rows: readonly string[]) =>
    run<number>(redis, script(markSource), ["rows", "batches"], [String(batch), ...rows]);

  const marks = async () => [
    await redis.zRange("rows", 0, -1),
    await redis.zRange("batches", 0, -1),
  ];

  beforeEach(async () => {
    const rows = ["1 5", "2 5", "3 5", "1 6"];
    await redis.zAdd(
      "rows",
      rows.map((value, score) => ({ value, score })),
    );
  });

  test("replaces the marks of a batch's rows by one for the batch", async () => {
    const fromMs = Date.now();
    expect(await mark(5, "1 5", "2 5", "3 5")).toBe(3);
    expect(await marks()).toEqual([["1 6"], ["5"]]);
    expect(await redis.zScore("batches", "5")).toBeWithin(fromMs, Date.now() + 1);
    expect(await mark(6, "1 6")).toBe(1);
    expect(await marks()).toEqual([[], ["5", "6"]]);
  });

  test.each([[["4 5", "1 5", "2 5"]], [["1 5", "4 5", "2 5"]], [["1 5", "2 5", "4 5"]]])(
    "does not mark a batch with a row that still counts: %p",
    async (rows) => {
      expect(await mark(5, ...rows)).toBe(0);
      expect(await marks()).toEqual([["1 5", "2 5", "3 5", "1 6"], []]);
    },
  );
});

describe("retire-batches.lua", () => {
  const REMOVAL = { atMs: 1_800_000_000_000, archivedBefore: "2026-11-20", shipments: 9 };
  const LEFT = [
    { channel: CHANNEL, status: 4, shipments: 7 },
    { channel: 8, status: 2, shipments: 2 },
  ];

  const retire = (
    terms: { readonly from: number; readonly to: number; readonly moves: number },
    left: readonly RetiredCount[] = LEFT,
  ) => retireBatches(redis, COMPANY, terms, left, REMOVAL);

  /** The floor is being raised from 2 to 5. */
  beforeEach(async () => {
    await redis.hSet(summary, { floor: "2", seq: "40", batch: "9" });
    await redis.hSet(summary, { [`n:${CHANNEL}:4`]: "10", [`n:${CHANNEL}:3`]: "1", "n:8:2": "2" });
    await noteRetiring(redis, COMPANY, 5, "2026-11-20");
    await noteForgottenRows(redis, COMPANY, 5, 9);
    await noteForgotten(redis, COMPANY, 5);
  });

  test("stops counting the shipments below the new floor", async () => {
    const fromMs = Date.now();
    expect(await retire({ from: 2, to: 5, moves: 40 })).toBe(true);
    const counts = [`n:${CHANNEL}:4`, `n:${CHANNEL}:3`, "n:8:2"];
    expect(await redis.hmGet(summary, ["floor", "seq", ...counts])).toEqual([
      ...["5", "41"],
      ...["3", "1", "0"],
    ]);
    expect((await readDeletable(redis, COMPANY)).raisedAtMs).toBeWithin(fromMs, Date.now() + 1);
    expect(await readRemovals(redis, COMPANY)).toEqual([REMOVAL]);
    expect(await redis.hGet(summary, "removed")).toBe("9");
  });

  test("clears the state of a removal, and adds up the removed shipments", async () => {
    await retire({ from: 2, to: 5, moves: 40 });
    const { to, forgottenAtMs } = await readRetirement(redis, COMPANY);
    expect([to, forgottenAtMs, await readForgottenRows(redis, COMPANY)]).toEqual([null, null, 0]);
    await noteRetiring(redis, COMPANY, 6, "2026-11-21");
    const one = { channel: CHANNEL, status: 4, shipments: 1 };
    expect(await retire({ from: 5, to: 6, moves: 41 }, [one])).toBe(true);
    expect(await redis.hmGet(summary, ["floor", "seq", "removed"])).toEqual(["6", "42", "10"]);
  });

  test("works without an earlier floor, and for batches with nothing that counts", async () => {
    await redis.hDel(summary, ["floor", "seq"]);
    expect(await retire({ from: 0, to: 5, moves: 0 }, [])).toBe(true);
    expect(await redis.hmGet(summary, ["floor", "seq", "removed"])).toEqual(["5", "1", "0"]);
  });

  test.each([
    ["the floor was raised meanwhile", { from: 1, to: 5, moves: 40 }],
    ["a shipment was moved meanwhile", { from: 2, to: 5, moves: 39 }],
    ["the floor is being raised to another batch", { from: 2, to: 4, moves: 40 }],
  ])("does nothing if %s", async (_, terms) => {
    const before = await redis.hGetAll(summary);
    expect(await retire(terms)).toBe(false);
    expect(await redis.hGetAll(summary)).toEqual(before);
    expect(await readRemovals(redis, COMPANY)).toEqual([]);
  });

  test("a process that was paused notes nothing about a removal that another has ended", async () => {
    await retire({ from: 2, to: 5, moves: 40 });
    await noteRetiring(redis, COMPANY, 6, "2026-11-21");
    const before = await redis.hGetAll(summary);
    const late = [
      () => noteRetiring(redis, COMPANY, 5, "2026-11-20"),
      () => noteRetiring(redis, COMPANY, 7, "2026-11-22"),
      () => noteForgottenRows(redis, COMPANY, 5, 9),
      () => noteForgotten(redis, COMPANY, 5),
    ];
    for (const note of late) await expect(note()).rejects.toThrow(LockLost);
    expect(await redis.hGetAll(summary)).toEqual(before);
    await retire({ from: 5, to: 6, moves: 41 }, []);
    for (const to of [5, 6]) {
      await expect(noteRetiring(redis, COMPANY, to, "2026-11-20")).rejects.toThrow(LockLost);
    }
    expect((await readRetirement(redis, COMPANY)).to).toBeNull();
  });

  test(`keeps the newest ${REMOVALS_KEPT} reports`, async () => {
    const older = Array.from({ length: REMOVALS_KEPT }, (_, at) => ({ ...REMOVAL, atMs: at }));
    const texts = older.map((removal) => JSON.stringify(removal));
    await redis.rPush(keys.removals(COMPANY), texts.slice(0, -1));
    await retire({ from: 2, to: 5, moves: 40 });
    expect(await readRemovals(redis, COMPANY)).toEqual([REMOVAL, ...older.slice(0, -1)]);
    await noteRetiring(redis, COMPANY, 6, "2026-11-21");
    await retire({ from: 5, to: 6, moves: 41 });
    expect(await readRemovals(redis, COMPANY)).toEqual([REMOVAL, REMOVAL, ...older.slice(0, -2)]);
  });
});

describe("number-rows.lua", () => {
  const ids = ["000000000117", "000000000133", "000000000149", "000000000165", "000000000181"];

  /** @returns 1 when all rows have their ranks */
  const number = (from: number, rows: number) =>
    run<number>(redis, script(numberRowsSource), ["index", "rows"], [from, rows].map(String));

  const standing = async () =>
    (await redis.zRangeWithScores("index", 0, -1)).map(({ value, score }) => [value, score]);

  const put = (values: readonly string[]) =>
    redis.zAdd(
      "index",
      values.map((value) => ({ value, score: Number(value) })),
    );

  test("numbers only the rows of its step", async () => {
    await put(ids);
    expect(await number(0, 2)).toBe(0);
    const numbered = (count: number) => ids.map((id, at) => [id, at < count ? at : Number(id)]);
    expect(await standing()).toEqual(numbered(2));
    expect(await number(0, 2)).toBe(0);
    expect(await number(2, 2)).toBe(0);
    expect(await standing()).toEqual(numbered(4));
    expect(await redis.exists("rows")).toBe(0);
    expect(await number(4, 2)).toBe(1);
    expect(await standing()).toEqual(numbered(5));
    expect(await redis.hGetAll("rows")).toEqual({ gone: "0" });
  });

  test("finishes with an empty step when the last one was full", async () => {
    await put(ids.slice(0, 2));
    expect(await number(0, 2)).toBe(0);
    expect(await number(2, 2)).toBe(1);
    expect(await redis.hGetAll("rows")).toEqual({ gone: "0" });
  });

  test("finishes at once for a channel without rows", async () => {
    expect(await number(0, 2)).toBe(1);
    expect(await redis.hGetAll("rows")).toEqual({ gone: "0" });
    expect(await redis.exists("index")).toBe(0);
  });

  test("numbers nothing again once all rows have ranks", async () => {
    await redis.hSet("rows", "gone", "3");
    await put(ids);
    expect(await number(0, 2)).toBe(1);
    expect(await standing()).toEqual(ids.map((id) => [id, Number(id)]));
    expect(await redis.hGetAll("rows")).toEqual({ gone: "3" });
  });
});

describe("read-summary.lua", () => {
  test("reads all rows and batches that do not count", async () => {
    await redis.hSet(summary, { batch: "3", seq: "2" });
    const nothing = { batch: 3, floor: 0, moves: 2, channels: new Map() };
    expect(await readArchiveSummary(redis, COMPANY)).toEqual({
      ...nothing,
      absentRows: [],
      absentBatches: [],
    });
    const rows = ["17 1", "33 1", "49 2"];
    const all = (values: readonly string[]) => values.map((value) => ({ value, score: 1 }));
    await redis.zAdd(keys.absentRows(COMPANY), all(rows));
    await redis.zAdd(keys.absentBatches(COMPANY), all(["1", "2"]));
    expect(await readArchiveSummary(redis, COMPANY)).toEqual({
      ...nothing,
      absentRows: rows,
      absentBatches: [1, 2],
    });
  });

  test("finds nothing for a company that never archived anything", async () => {
    expect(await readArchiveSummary(redis, COMPANY)).toBeNull();
  });
});
