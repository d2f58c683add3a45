/** The archive scripts, called one at a time: shipments leave Redis, come back and are forgotten. */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { readArchiveSummary, SKIPPED_FROM } from "#core/archive/store/archive-summary.ts";
import {
  type Leaving,
  NUMBER_TAKEN_MS,
  numberRows,
  readLeaving,
  removeShipments,
} from "#core/archive/store/remove-shipments.ts";
import { restoreShipments } from "#core/archive/store/restore-shipments.ts";
import { binary, run, script } from "#core/platform/redis/client.ts";
import {
  companyKeys,
  companyPartition,
  indexMember,
  webhookKeys,
} from "#core/platform/redis/keys.ts";
import { initialState } from "#core/shipments/rules/fold.ts";
import {
  BYTES_PER_ROW,
  DAY_SHIFT,
  decodeRow,
  GONE,
  MANY_OF_ONE_VALUE,
  ROWS_PER_BLOCK,
} from "#core/shipments/store/columns.ts";
import { createShipments } from "#core/shipments/store/create-shipments.ts";
import forgetNumbersSource from "#core/shipments/store/forget-numbers.lua" with { type: "text" };
import {
  commitShipments,
  readHotShipments,
  readShipments,
} from "#core/shipments/store/shipments.ts";
import { STATUSES, type Status } from "#core/statuses/rules/status.ts";
import { readAll } from "#test/support/data/everything.ts";
import { openTestRedis } from "#test/support/servers/servers.ts";

const COMPANY = 3;
const [CHANNEL, OTHER] = [7, 8];
const COURIER = "GLS_ITA";
const SHIP_DATE = "2026-11-09";
const SHIP_DAY = Date.parse(SHIP_DATE) / 86_400_000;
/** Seconds since 1970. */
const CHANGED = Date.parse("2026-11-12T10:00:00Z") / 1_000;
const DELIVERED = STATUSES.indexOf("DELIVERED");
const WAITING = STATUSES.indexOf("WAITING_TO_COMPUTE");

const keys = companyKeys(companyPartition(COMPANY));
const { verdicts } = webhookKeys(companyPartition(COMPANY));

const { redis, stop } = await openTestRedis();
beforeEach(async () => {
  await redis.flushAll();
  for (const channelId of [CHANNEL, OTHER]) await numberRows(redis, COMPANY, channelId);
});
afterAll(stop);

interface Options {
  readonly channelId?: number;
  readonly shipDate?: string;
  readonly color?: string;
}

async function create(trackingNumber: string, options: Options = {}): Promise<number> {
  const { channelId = CHANNEL, shipDate = SHIP_DATE, color } = options;
  const own = { companyId: COMPANY, channelId, courier: COURIER, trackingNumber, shipDate };
  const planning = { deliveryDate: null, latestShipDate: null, latestDeliveryDate: null };
  const record = {
    ...own,
    language: "it" as const,
    planning,
    createdAtMs: 0,
    ...(color && { customAttributes: { custom1: color } }),
  };
  const meta = {
    ...own,
    isPlaceholder: false,
    orderReference: null,
    destCap: null,
    originCap: null,
    weightKg: null,
  };
  const [created] = await createShipments(redis, COMPANY, [{ record, meta }]);
  return created?.id ?? 0;
}

/** Gives each shipment a status at its own second. */
async function change(status: Status, ...at: readonly (readonly [id: number, second: number])[]) {
  for (const [id, second] of at) {
    const from = (await readHotShipments(redis, [id])).get(id);
    if (!from) throw new Error(`no shipment ${id}`);
    const state = { ...initialState("PENDING"), pair: { status, detail: 0 } };
    await commitShipments(
      redis,
      [{ from, state, facts: [], changes: [], stamp: true }],
      second * 1_000,
    );
  }
}

/** Everything that may be stored with a shipment. */
async function keepBeside(id: number): Promise<void> {
  await redis.rPush(keys.notifications(id), ["newest", "oldest"]);
  await redis.hSet(keys.releases(id), "17", "asked");
  await redis.hSet(keys.topics(id), "DELIVERED", "1000");
}

async function leave(batch: number, ...ids: readonly number[]): Promise<Leaving[]> {
  const leaving = await readLeaving(redis, ids);
  const removed = await removeShipments(redis, COMPANY, batch, leaving);
  expect(removed).toEqual(ids.map(() => true));
  return leaving;
}

/** The whole store by key, except the keys given. */
async function everything(except: readonly string[] = []): Promise<ReadonlyMap<string, string>> {
  const names = (await redis.keys("*")).filter((key) => !except.includes(key));
  return (await readAll(redis, names)).values;
}

async function bytesOf(key: string): Promise<Buffer> {
  return ((await binary(redis).get(key)) as Buffer | null) ?? Buffer.alloc(0);
}

/** Of the channel. */
async function rowsOf(block: number) {
  const bytes = await bytesOf(keys.block(CHANNEL, block));
  return Array.from({ length: bytes.length / BYTES_PER_ROW }, (_, at) =>
    decodeRow(bytes, at * BYTES_PER_ROW),
  );
}

/** How many ranks it has dropped, and those that it holds. */
async function rowLog(): Promise<{ gone: number; ranks: number[] }> {
  const bytes = await bytesOf(keys.rowLog(CHANNEL));
  const ranks = Array.from({ length: (bytes.length - 8) / 4 }, (_, at) =>
    bytes.readUInt32LE(8 + 4 * at),
  );
  return { gone: bytes.readDoubleLE(0), ranks };
}

const index = (order: "id" | "ship" | "upd") =>
  redis.zRangeWithScores(keys.index(CHANNEL, order), 0, -1);
const absentRows = () => redis.zRangeWithScores(keys.absentRows(COMPANY), 0, -1);
const number = (text: string) => keys.numbers(CHANNEL, text);
const reds = keys.exact(CHANNEL, "custom1", "RED");
const redBits = keys.exactBits(CHANNEL, "custom1", "RED");

describe("remove.lua", () => {
  test("removes a shipment, everything stored with it, and its entries in every index", async () => {
    const a = await create("A", { color: "RED" });
    const b = await create("B", { color: "RED" });
    await keepBeside(a);
    await leave(1, a);
    const own = [keys.shipment(a), keys.notifications(a), keys.releases(a), keys.topics(a)];
    expect(await redis.exists(own)).toBe(0);
    const value = indexMember(b);
    expect(await index("id")).toEqual([{ value, score: 1 }]);
    expect(await index("ship")).toEqual([{ value, score: SHIP_DAY }]);
    expect(await index("upd")).toEqual([{ value, score: 0 }]);
    expect(await redis.sMembers(reds)).toEqual([String(b)]);
    expect((await readShipments(redis, [a, b])).map(({ record }) => record.id)).toEqual([b]);
  });

  test("keeps its tracking number taken for ten minutes, unless another shipment shares it", async () => {
    const ids = [await create("A"), await create("B"), await create("C"), await create("D")];
    const leaving = await readLeaving(redis, ids.slice(0, 3));
    await redis.hSet(number("B"), "BRT", "99");
    await redis.hSet(number("C"), COURIER, "99");
    expect(await removeShipments(redis, COMPANY, 1, leaving)).toEqual([true, true, true]);
    expect(await redis.pTTL(number("A"))).toBeWithin(NUMBER_TAKEN_MS - 60_000, NUMBER_TAKEN_MS + 1);
    expect(await redis.hGetAll(number("A"))).toEqual({ [COURIER]: String(ids[0]) });
    for (const other of ["B", "C", "D"]) expect(await redis.pTTL(number(other))).toBe(-1);
  });

  test("marks its row as gone and adds its rank to the row log", async () => {
    const [a, b, c] = [await create("A"), await create("B"), await create("C")];
    await change("DELIVERED", [b, CHANGED]);
    const before = await rowsOf(0);
    await leave(1, b, c);
    const gone = (row = { id: 0, updated: 0, shipped: 0, status: 0 }) => ({ ...row, status: GONE });
    expect(await rowsOf(0)).toEqual(before.map((row) => (row.id === a ? row : gone(row))));
    expect(await rowLog()).toEqual({ gone: 0, ranks: [0, 1, 2, 1, 1, 2] });
    expect(await redis.hGetAll(keys.rows(CHANNEL))).toEqual({ gone: "2", 0: "2" });
  });

  test("drops a block, and no other, when its last shipment leaves", async () => {
    // As removals have left it.
    const gone = ROWS_PER_BLOCK - 2;
    await redis.hSet(keys.rows(CHANNEL), { gone: String(gone), 0: String(gone) });
    const [a, b, c] = [await create("A"), await create("B"), await create("C")];
    await leave(1, a);
    expect(await redis.strLen(keys.block(CHANNEL, 0))).toBe(ROWS_PER_BLOCK * BYTES_PER_ROW);
    await leave(2, b, c);
    expect(await redis.get(keys.block(CHANNEL, 0))).toBe("\0");
    expect((await rowsOf(1)).map(({ id, status }) => [id, status])).toEqual([[c, GONE]]);
    expect(await redis.hGetAll(keys.rows(CHANNEL))).toEqual({
      gone: String(ROWS_PER_BLOCK + 1),
      0: String(ROWS_PER_BLOCK),
      1: "1",
    });
  });

  test("counts what has left by channel and status, and keeps the highest values seen", async () => {
    const lowest = await create("A", { shipDate: "2026-10-01" });
    const ids = [
      await create("B", { shipDate: "2026-12-01" }),
      await create("C", { channelId: OTHER }),
      ...[await create("D"), await create("E")],
    ];
    const [b = 0, c = 0, d = 0, e = 0] = ids;
    await change("RETURNED", [lowest, CHANGED + 1]);
    await change("DELIVERED", [b, CHANGED + 2], [d, CHANGED + 3]);
    await leave(1, ...ids);
    const shipped = DAY_SHIFT + Date.parse("2026-12-01") / 86_400_000;
    const counts = [
      [DELIVERED, 2],
      [WAITING, 1],
    ] as const;
    const none = { batch: 1, floor: 0, absentRows: [], absentBatches: [] };
    const other = {
      counts: new Map([[WAITING, 1]]),
      id: c,
      updated: 0,
      shipped: SHIP_DAY + DAY_SHIFT,
    };
    const highest = { id: e, updated: CHANGED + 3, shipped };
    expect(await readArchiveSummary(redis, COMPANY)).toEqual({
      ...none,
      moves: 1,
      channels: new Map([
        [CHANNEL, { ...highest, counts: new Map(counts) }],
        [OTHER, other],
      ]),
    });
    await leave(2, lowest);
    const all = new Map([...counts, [STATUSES.indexOf("RETURNED"), 1]]);
    expect(await readArchiveSummary(redis, COMPANY)).toEqual({
      ...none,
      batch: 2,
      moves: 2,
      channels: new Map([
        [CHANNEL, { ...highest, counts: all }],
        [OTHER, other],
      ]),
    });
  });

  test("deletes the bitmap of a value with the last shipment that has it", async () => {
    const ids = [await create("A", { color: "RED" }), await create("B", { color: "RED" })];
    const [a = 0, b = 0] = ids;
    await redis.setBit(redBits, 0, 1);
    await leave(1, a);
    expect([await redis.sMembers(reds), await redis.exists(redBits)]).toEqual([[String(b)], 1]);
    const c = await create("C", { color: "RED" });
    await leave(2, b, c);
    expect(await redis.exists([reds, redBits])).toBe(0);
  });

  type Change = readonly [what: string, make: (id: number) => Promise<unknown>];
  test.each<Change>([
    ["it changed", (id) => change("DELIVERED", [id, CHANGED])],
    ["it was deleted", (id) => redis.del(keys.shipment(id))],
    ["a webhook was decided for it", (id) => redis.hSet(verdicts(id), "change", "1")],
    ["a notification was sent", (id) => redis.lPush(keys.notifications(id), "another")],
    [
      "its newest notification was replaced",
      (id) => redis.lSet(keys.notifications(id), 0, "latest"),
    ],
    [
      "its oldest notification was replaced",
      (id) => redis.lSet(keys.notifications(id), -1, "eldest"),
    ],
    ["its notifications were deleted", (id) => redis.del(keys.notifications(id))],
    ["a stock release changed", (id) => redis.hSet(keys.releases(id), "17", "given")],
    ["a topic was added", (id) => redis.hSet(keys.topics(id), "RETURNED", "1000")],
    [
      "everything stored with it was deleted",
      (id) => redis.del([keys.notifications(id), keys.releases(id), keys.topics(id)]),
    ],
  ])("keeps the shipment and discounts its archived row if %s after the read", async (_, make) => {
    const [a, b] = [await create("A", { color: "RED" }), await create("B", { channelId: OTHER })];
    for (const id of [a, b]) await keepBeside(id);
    const leaving = await readLeaving(redis, [a, b]);
    await make(a);
    const own = new RegExp(`:${CHANNEL}(:|$)|:${a}$`);
    const standing = async () => [...(await everything())].filter(([key]) => own.test(key));
    const before = await standing();
    const fromMs = Date.now();
    expect(await removeShipments(redis, COMPANY, 1, leaving)).toEqual([false, true]);
    expect(await standing()).toEqual(before);
    const [row, ...others] = await absentRows();
    expect([row?.value, others]).toEqual([`${a} 1`, []]);
    expect(row?.score).toBeWithin(fromMs, Date.now() + 1);
    const { batch, channels } = (await readArchiveSummary(redis, COMPANY)) ?? {};
    expect([batch, [...(channels?.keys() ?? [])]]).toEqual([1, [OTHER]]);
    expect(await redis.exists(keys.shipment(b))).toBe(0);
  });

  test("keeps a shipment that gained a first release or topic after the read", async () => {
    const a = await create("A");
    const leaving = await readLeaving(redis, [a]);
    for (const [at, key] of [keys.releases(a), keys.topics(a)].entries()) {
      await redis.hSet(key, "1", "one");
      expect(await removeShipments(redis, COMPANY, 1 + at, leaving)).toEqual([false]);
      await redis.del(key);
    }
    expect(await removeShipments(redis, COMPANY, 3, leaving)).toEqual([true]);
  });

  test("settles all earlier batches, and ignores a batch that comes too late", async () => {
    const [a, b] = [await create("A"), await create("B")];
    const [first, second] = [await readLeaving(redis, [a]), await readLeaving(redis, [b])];
    expect(await removeShipments(redis, COMPANY, 3, first)).toEqual([true]);
    const lost = await redis.zRangeWithScores(keys.absentBatches(COMPANY), 0, -1);
    expect(lost.map(({ value }) => value)).toEqual(["1", "2"]);
    // Known for good: whoever was to write them may be paused for any time.
    expect(lost.map(({ score }) => score - SKIPPED_FROM)).toEqual([1, 2]);
    await redis.zAdd(keys.absentBatches(COMPANY), { score: Date.now(), value: "4" });
    const before = await everything();
    for (const late of [1, 3, 4]) {
      expect(await removeShipments(redis, COMPANY, late, second)).toBeNull();
    }
    expect(await everything()).toEqual(before);
    expect(await removeShipments(redis, COMPANY, 5, second)).toEqual([true]);
    expect((await readArchiveSummary(redis, COMPANY))?.absentBatches).toEqual([1, 2, 4]);
  });

  test("rejects a shipment that is named twice, and changes nothing", async () => {
    const leaving = await readLeaving(redis, [await create("A"), await create("B")]);
    const before = await everything();
    const refused = removeShipments(redis, COMPANY, 1, [...leaving, ...leaving.slice(0, 1)]);
    await expect(refused).rejects.toThrow("the row that holds it would not count");
    expect(await everything()).toEqual(before);
  });
});

describe("restore.lua", () => {
  const restore = (batch: number, leaving: readonly Leaving[]) =>
    restoreShipments(
      redis,
      leaving.map(({ whole, facts }) => ({ companyId: COMPANY, batch, whole, facts })),
    );

  /** Keys that record moves, and the hashes of shipments. */
  const movedKeys = (ids: readonly number[]) => [
    ...[keys.archived(COMPANY), keys.absentRows(COMPANY)],
    ...[keys.rows(CHANNEL), keys.rowLog(CHANNEL), ...ids.map(keys.shipment)],
  ];

  test("brings shipments back exactly as they were, and discounts their archived rows", async () => {
    const ids = [await create("A"), await create("B", { color: "RED" }), await create("C")];
    const [, b = 0, c = 0] = ids;
    await change("DELIVERED", [b, CHANGED]);
    await keepBeside(b);
    await redis.rPush(keys.notifications(c), "only");
    const [stood, shipments] = [await everything(movedKeys(ids)), await readShipments(redis, ids)];
    const fromMs = Date.now();
    expect(await restore(1, await leave(1, b, c))).toEqual([b, c]);
    expect(await everything(movedKeys(ids))).toEqual(stood);
    expect(await readShipments(redis, ids)).toEqual(shipments);
    expect(await redis.pTTL(number("B"))).toBe(-1);
    const versions = [...(await readHotShipments(redis, ids)).values()].map((one) => one.version);
    expect(versions).toEqual([1, 3, 2]);
    const rows = await absentRows();
    expect(new Set(rows.map(({ value }) => value))).toEqual(new Set([`${b} 1`, `${c} 1`]));
    for (const { score } of rows) expect(score).toBeWithin(fromMs, Date.now() + 1);
    expect((await rowLog()).ranks.slice(-2)).toEqual([1, 2]);
    expect(await redis.hGetAll(keys.rows(CHANNEL))).toEqual({ gone: "0", 0: "0" });
    const { moves, channels } = (await readArchiveSummary(redis, COMPANY)) ?? {};
    const counts = [
      [DELIVERED, 0],
      [WAITING, 0],
    ] as const;
    expect([moves, channels?.get(CHANNEL)?.counts]).toEqual([2, new Map(counts)]);
  });

  test("refills a dropped block with rows of zeros", async () => {
    // As removals have left it.
    const gone = ROWS_PER_BLOCK - 2;
    await redis.hSet(keys.rows(CHANNEL), { gone: String(gone), 0: String(gone) });
    const [a, b, c] = [await create("A"), await create("B"), await create("C")];
    const before = [await rowsOf(0), await rowsOf(1)];
    const leaving = await leave(1, a, b, c);
    expect(await restore(1, leaving.slice(1))).toEqual([b, c]);
    const dropped = { id: 0, updated: 0, shipped: 0, status: GONE };
    expect(await rowsOf(0)).toEqual((before[0] ?? []).map((row) => (row.id === b ? row : dropped)));
    expect(await rowsOf(1)).toEqual(before[1] ?? []);
    expect(await redis.hGetAll(keys.rows(CHANNEL))).toEqual({
      gone: String(ROWS_PER_BLOCK - 1),
      0: String(ROWS_PER_BLOCK - 1),
      1: "0",
    });
  });

  test("gives a shipment its tracking number back, unless another has taken it", async () => {
    const [a, b] = [await create("A"), await create("B")];
    const leaving = await leave(1, a, b);
    await redis.del(number("A"));
    await redis.hSet(number("B"), COURIER, "99");
    expect(await restore(1, leaving)).toEqual([a, b]);
    expect(await redis.hGetAll(number("A"))).toEqual({ [COURIER]: String(a) });
    expect(await redis.hGetAll(number("B"))).toEqual({ [COURIER]: "99" });
    expect(await redis.pTTL(number("B"))).toBe(-1);
  });

  type Reason = readonly [why: string, make: (row: string) => Promise<unknown>];
  test.each<Reason>([
    ["has not been settled", () => redis.hSet(keys.archived(COMPANY), "batch", "0")],
    ["has no settled batch after it", () => redis.hDel(keys.archived(COMPANY), "batch")],
    ["is below the floor", () => redis.hSet(keys.archived(COMPANY), "floor", "2")],
    ["does not count", (row) => redis.zAdd(keys.absentRows(COMPANY), { score: 1, value: row })],
    [
      "belongs to a batch that does not count",
      () => redis.zAdd(keys.absentBatches(COMPANY), { score: 1, value: "1" }),
    ],
    [
      "belongs to a shipment that is in Redis",
      (row) => redis.hSet(keys.shipment(Number(row.split(" ")[0])), "v", "9"),
    ],
  ])("does nothing for a row that %s", async (_, make) => {
    const a = await create("A");
    const leaving = await leave(1, a);
    await make(`${a} 1`);
    const before = await everything();
    expect(await restore(1, leaving)).toEqual([]);
    expect(await everything()).toEqual(before);
  });

  test("brings back rows at the floor, and skips those already back", async () => {
    const [a, b] = [await create("A"), await create("B")];
    const leaving = await leave(1, a, b);
    await redis.hSet(keys.archived(COMPANY), "floor", "1");
    expect(await restore(1, leaving.slice(0, 1))).toEqual([a]);
    expect(await restore(1, leaving)).toEqual([b]);
    expect((await readArchiveSummary(redis, COMPANY))?.moves).toBe(3);
  });

  test(`rebuilds the bitmap of a value once ${MANY_OF_ONE_VALUE} shipments have it again`, async () => {
    const colors = { color: "RED" };
    const [a, b, c] = [
      await create("A", colors),
      await create("B", colors),
      await create("C", colors),
    ];
    const leaving = await leave(1, a, b);
    expect(await redis.sMembers(reds)).toEqual([String(c)]);
    const others = Array.from({ length: MANY_OF_ONE_VALUE - 2 }, (_, at) => 8 + at);
    await redis.sAdd(
      reds,
      others.map((rank) => String(1_000_000 + rank)),
    );
    await redis.zAdd(
      keys.index(CHANNEL, "id"),
      others.map((rank) => ({ score: rank, value: indexMember(1_000_000 + rank) })),
    );
    const bits = (ranks: readonly number[]) => {
      const bytes = Buffer.alloc(1 + Math.ceil(others.length / 8));
      for (const rank of ranks) bytes[rank >> 3] = (bytes[rank >> 3] ?? 0) | (128 >> (rank & 7));
      return bytes;
    };
    expect(await redis.exists(redBits)).toBe(0);
    await restore(1, leaving.slice(0, 1));
    expect(await bytesOf(redBits)).toEqual(bits([0, 2, ...others]));
    await restore(1, leaving.slice(1));
    expect(await bytesOf(redBits)).toEqual(bits([0, 1, 2, ...others]));
  });
});

describe("the row log", () => {
  /** `row-log.lua`. */
  const [MOST, KEPT] = [16_382, 8_192];

  test(`holds ${MOST} ranks; one more cuts it to the latest ${KEPT}`, async () => {
    const [a, b] = [await create("A"), await create("B")];
    const before = Buffer.alloc(8 + 4 * (MOST - 1), 0xff);
    before.writeDoubleLE(500);
    await redis.set(keys.rowLog(CHANNEL), before);
    const filler = 0xffffffff;
    const ranks = (count: number, ...last: number[]) => [...Array(count).fill(filler), ...last];
    await leave(1, a);
    expect(await rowLog()).toEqual({ gone: 500, ranks: ranks(MOST - 1, 0) });
    await leave(2, b);
    const gone = 500 + MOST + 1 - KEPT;
    expect(await rowLog()).toEqual({ gone, ranks: ranks(KEPT - 2, 0, 1) });
  });
});

describe("read-whole.lua", () => {
  test("reads shipments with everything stored with them, and skips those with a webhook decision", async () => {
    const ids = [await create("A"), await create("B"), await create("C"), await create("D")];
    const [a = 0, b = 0, c = 0, d = 0] = ids;
    await keepBeside(a);
    await redis.hSet(keys.topics(b), "RETURNED", "2000");
    await redis.hSet(verdicts(d), "change", "1");
    const leaving = await readLeaving(redis, [...ids.slice(0, 2), 9_999, ...ids.slice(2)]);
    const beside = leaving.map(({ whole: { id, messages, releases, topics } }) => ({
      id,
      messages,
      releases,
      topics,
    }));
    const nothing = { messages: [], releases: [], topics: [] };
    expect(beside).toEqual([
      {
        id: a,
        messages: ["newest", "oldest"],
        releases: ["17", "asked"],
        topics: ["DELIVERED", "1000"],
      },
      { ...nothing, id: b, topics: ["RETURNED", "2000"] },
      { ...nothing, id: c },
    ]);
    expect(leaving.map(({ facts }) => facts.head)).toEqual(["1 0 0 0", "1 1 0 0", "1 2 0 0"]);
    const digests = leaving.map(({ sideDigest }) => sideDigest);
    expect([new Set(digests).size, digests[2]]).toEqual([3, ""]);
  });
});

describe("forget-numbers.lua", () => {
  const forget = (...owned: readonly (readonly [id: number, text: string])[]) =>
    run<number>(
      redis,
      script(forgetNumbersSource),
      owned.flatMap(([id, text]) => [keys.shipment(id), number(text)]),
      owned.flatMap(([id]) => [COURIER, String(id)]),
    );

  test("frees the numbers of shipments that are no longer in Redis, and no others", async () => {
    const standing = await create("A");
    await redis.hSet(number("B"), { [COURIER]: "91", BRT: "92" });
    await redis.hSet(number("C"), { [COURIER]: "93" });
    await redis.hSet(number("D"), { BRT: "94" });
    await redis.hSet(number("E"), { [COURIER]: "95" });
    const owned = [
      [standing, "A"],
      [91, "B"],
      [92, "C"],
      [94, "D"],
      [95, "E"],
    ] as const;
    expect(await forget(...owned)).toBe(2);
    expect(await redis.hGetAll(number("A"))).toEqual({ [COURIER]: String(standing) });
    expect(await redis.hGetAll(number("B"))).toEqual({ BRT: "92" });
    expect(await redis.hGetAll(number("C"))).toEqual({ [COURIER]: "93" });
    expect(await redis.hGetAll(number("D"))).toEqual({ BRT: "94" });
    expect(await redis.exists(number("E"))).toBe(0);
    expect(await forget(...owned)).toBe(0);
  });
});
