/** Search over Redis and the archive, while shipments move to and fro, against a plain filter and sort of the same shipments. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { engineOf } from "#analytics/archive/archive-engine.ts";
import { completeIndex, isIndexComplete } from "#analytics/archive/archive-index.ts";
import {
  ABSENT_IN_ORDER,
  CHANNELS_IN_ORDER,
  countHits,
  type Kind,
  kindInOrder,
  MANY,
} from "#analytics/archive/archive-questions.ts";
import { ARCHIVED_SHIPMENTS, archiveRow } from "#analytics/archive/archive-rows.ts";
import { deleteRows, insertArchived } from "#analytics/archive/archive-table.ts";
import { DELETED_TOGETHER, deleteAbsent, moveToArchive } from "#analytics/archive/archiver.ts";
import { applySchema } from "#analytics/clickhouse/apply-schema.ts";
import { openBare, STATEMENT_BYTES } from "#analytics/clickhouse/clickhouse.ts";
import { readAnywhere } from "#core/archive/store/archive.ts";
import { type Counting, readArchiveSummary } from "#core/archive/store/archive-summary.ts";
import { numberRows, REMOVED_PER_CALL, readLeaving } from "#core/archive/store/remove-shipments.ts";
import { restoreShipments } from "#core/archive/store/restore-shipments.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { chunks } from "#core/platform/process/chunks.ts";
import { companyKeys, companyPartition } from "#core/platform/redis/keys.ts";
import {
  ARCHIVE_HEADS,
  type ArchiveQuestion,
  type SearchableArchive,
  searchBoth,
} from "#core/search/store/archive-search.ts";
import type { ShipmentQuery } from "#core/search/store/shipment-query.ts";
import { ROWS_PER_BLOCK } from "#core/shipments/store/columns.ts";
import { readShipments, type StoredShipment } from "#core/shipments/store/shipments.ts";
import { applyEvents } from "#test/support/data/facts.ts";
import {
  type Asked,
  createSearched,
  FIRST_DAY,
  ORDERS,
  pageOf,
  queryOf,
  questions,
  type Row,
  rowOf,
  type Searched,
  searchedCompany,
  type Variety,
} from "#test/support/data/searched-shipments.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { held, openTestArchive, type TestArchive } from "#test/support/product/archive.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

/** More than a block of rows, and than the values that have a bitmap. */
const SHIPMENTS = 5_000;
/** Many statements for the index of one year. */
const FILLED_TOGETHER = 150;
const YEARS_AGO: Readonly<Record<string, string>> = {
  channel: "4000000000",
  archived_on: "addYears(toDate('2023-02-28'), rowNumberInAllBlocks() % 2)",
  words_text: "base64Encode(words)",
  sealed_text: "base64Encode(sealed)",
};

let runtime: TestRuntime;
let opened: TestArchive;
let clickhouse: TestArchive["clickhouse"];
let archive: TestArchive["archive"];
let rows: Row[];
let company: Searched;
let channelIds: readonly number[];
let companyId: number;
/** Which of the shipments are in the archive. */
const archived = new Set<number>();

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup());
  opened = await openTestArchive(runtime);
  ({ clickhouse, archive } = opened);
  company = searchedCompany(runtime);
  ({ channelIds, companyId } = company);
  rows = await fill(0, SHIPMENTS);
  await numberRows(runtime.redis, companyId, channelIds[1] ?? 0);
}, 300_000);

afterAll(async () => {
  await opened.end();
  await runtime.end();
});

const VARIETY: Variety = {
  inSecond: 7,
  perShipDay: 100,
  orderReference: (number) => `ORDER-${Math.floor(number / 3)}`,
  customAttributes: (number) => ({
    custom1: number % 2 === 0 ? "even" : `odd-${number % 50}`,
    ...(number % 3 > 0 && { custom2: `third-${number % 3}` }),
    custom3: `own-${number}`,
  }),
  consignee: (number) => ({ name: "Ada Rossi", email: `ada${number}@example.test` }),
};

const fill = (first: number, count: number) =>
  createSearched(runtime, company, VARIETY, first, count);

async function moveAway(ids: readonly number[]): Promise<void> {
  const leaving = [];
  for (const part of chunks(ids, REMOVED_PER_CALL)) leaving.push(...(await opened.leavingOf(part)));
  expect(await moveToArchive(opened.deps(), companyId, leaving, held)).toBe(ids.length);
  for (const id of ids) archived.add(id);
}

/** Shipments of two years, of a channel that no question asks for. */
async function archiveYearsAgo(): Promise<void> {
  const columns = ARCHIVED_SHIPMENTS.columns.map((name) => YEARS_AGO[name] ?? name);
  await clickhouse.command({
    query: `INSERT INTO archived_shipments (${ARCHIVED_SHIPMENTS.columns})
            SETTINGS insert_deduplication_token = 'years ago'
            SELECT ${columns} FROM archived_shipments LIMIT 300`,
  });
}

async function bringBack(ids: readonly number[]): Promise<void> {
  const found = await archive.read(ids, channelIds);
  const restored = await restoreShipments(runtime.redis, found);
  expect(new Set(restored)).toEqual(new Set(ids));
  for (const id of ids) archived.delete(id);
}

async function expectAgreement(asked: Asked): Promise<void> {
  const query = queryOf(company, asked);
  const expected = pageOf(rows, query);
  // The archive gives all that stands before the page's end, and marks on the way there.
  for (const heads of [ARCHIVE_HEADS, 0]) {
    const { total, hits } = await answered(() => searchBoth(runtime.redis, archive, query, heads));
    expect({ total, ids: hits.map(({ id }) => id) }).toEqual(expected);
  }
}

/** A search that takes too long is 503 and is tried again: the machine may be busy. */
function answered<T extends object>(search: () => Promise<T>): Promise<T> {
  const unlessAway = (error: unknown) => {
    if (error instanceof Problem && error.code === "ARCHIVE_UNAVAILABLE") return null;
    throw error;
  };
  return eventually(() => search().catch(unlessAway), "the archive answers") as Promise<T>;
}

const NO_VALUES = { orderReference: "", custom1: "", custom2: "", custom3: "" };
/** Nobody asks by an empty value. */
const ofThoseGiven = (own: Row["exact"]): ShipmentQuery["exact"] =>
  Object.fromEntries(Object.entries(own).filter(([, value]) => value !== ""));

function questionsHere() {
  type Exact = ShipmentQuery["exact"];
  /** Values of one of the shipments, which may be on either side. */
  const some = (of: (own: Row["exact"]) => Exact) =>
    fc.nat(rows.length - 1).map((at): Exact => of(rows[at]?.exact ?? NO_VALUES));
  const exact = fc.oneof(
    { weight: 2, arbitrary: fc.constant({}) },
    { weight: 1, arbitrary: fc.constantFrom({ custom1: "even" }, { custom1: "odd-7" }) },
    { weight: 1, arbitrary: fc.constantFrom({ custom2: "third-1" }, { custom2: "nothing" }) },
    { weight: 1, arbitrary: some(({ orderReference }) => ({ orderReference })) },
    { weight: 1, arbitrary: some(({ custom3 }) => ({ custom3 })) },
    { weight: 1, arbitrary: some(({ orderReference, custom1 }) => ({ orderReference, custom1 })) },
    { weight: 1, arbitrary: some(ofThoseGiven) },
  );
  return questions(company, rows, exact);
}

async function rowsOf<T>(query: string): Promise<T[]> {
  const answer = await clickhouse.query({ query, format: "JSONEachRow" });
  return answer.json<T>();
}

describe("pages over both sides agree with a plain filter and sort", () => {
  async function askWhileMoving(): Promise<void> {
    const move = fc.record({
      isBack: fc.boolean(),
      first: fc.nat(SHIPMENTS),
      count: fc.integer({ min: 1, max: 300 }),
    });
    const step = fc.record({
      move,
      asked: fc.array(questionsHere(), { minLength: 2, maxLength: 5 }),
    });
    await fc.assert(
      fc.asyncProperty(step, async ({ move: { isBack, first, count }, asked }) => {
        const candidates = rows.map(({ id }) => id).filter((id) => archived.has(id) === isBack);
        const start = first % Math.max(1, candidates.length);
        const chosen = candidates.slice(start, start + count);
        if (chosen.length > 0) await (isBack ? bringBack(chosen) : moveAway(chosen));
        for (const one of asked) await expectAgreement(one);
      }),
      { numRuns: 8, endOnFailure: true },
    );
  }

  test("while shipments move to the archive and back between questions, in an installation without an index", async () => {
    await clickhouse.command({ query: "DROP TABLE archived_index_rows" });
    await clickhouse.command({ query: "DROP TABLE archived_index" });
    await askWhileMoving();
    await moveAway(rows.slice(0, 2_500).flatMap(({ id }) => (archived.has(id) ? [] : [id])));
    expect(await isIndexComplete(clickhouse)).toBe(false);
  }, 300_000);

  test("while the index is being filled, and once it is", async () => {
    await applySchema(clickhouse, runtime.config);
    // As an earlier version made it.
    await clickhouse.command({ query: "ALTER TABLE archived_index ADD COLUMN archived_on Date" });
    const rest = rows.slice(2_500).flatMap(({ id }) => (archived.has(id) ? [] : [id]));
    await moveAway(rest.slice(0, 200));
    await archiveYearsAgo();
    // Leaves its deduplication token on the connection that the index is filled over.
    await moveAway(rest.slice(200, 400));
    const asked = fc.asyncProperty(questionsHere(), expectAgreement);
    await fc.assert(asked, { numRuns: 6 });
    let asserted = 0;
    const loseAfterSome = async () => {
      asserted += 1;
      if (asserted > 5) throw new Error("the lock is lost");
    };
    const interrupted = completeIndex(clickhouse, loseAfterSome, FILLED_TOGETHER);
    await expect(interrupted).rejects.toThrow("the lock is lost");
    await fc.assert(asked, { numRuns: 6 });
    expect(await completeIndex(clickhouse, async () => {}, FILLED_TOGETHER)).toBe(true);
    expect(await completeIndex(clickhouse, async () => {})).toBe(false);
    const [found] = await rowsOf<Record<"shipments" | "every" | "rows" | "once", number>>(
      `SELECT uniqExact(channel, id, batch) AS shipments, (SELECT count() FROM archived_shipments) AS every,
         count() AS rows, uniqExact(channel, kind, value, id, batch) AS once
       FROM archived_index WHERE channel > 0`,
    );
    expect(Number(found?.shipments)).toBe(Number(found?.every));
    expect(Number(found?.rows)).toBe(Number(found?.once));
    await fc.assert(asked, { numRuns: 20 });
  }, 300_000);

  test("while shipments move to the archive and back between questions", askWhileMoving, 300_000);

  test("shipments created and changed beside archived ones", async () => {
    const before = rows.length;
    rows.push(...(await fill(before, 1_000)));
    const back = rows
      .filter(({ id }) => archived.has(id))
      .slice(0, 50)
      .map(({ id }) => id);
    await bringBack(back);
    await applyEvents(
      runtime,
      back.map((shipmentId) => ({ shipmentId, code: "OUT" })),
    );
    const changed = new Map(
      (await readShipments(runtime.redis, back)).map((one) => [one.record.id, rowOf(one)]),
    );
    rows = rows.map((row) => changed.get(row.id) ?? row);
    await fc.assert(fc.asyncProperty(questionsHere(), expectAgreement), { numRuns: 10 });
  }, 300_000);

  test("a block of rows is dropped with its last shipment, and comes back with the first one", async () => {
    const [channelId = 0] = channelIds;
    const { block } = companyKeys(companyPartition(companyId));
    const own = rows.filter((row) => row.channelId === channelId).slice(0, ROWS_PER_BLOCK);
    await moveAway(own.map(({ id }) => id).filter((id) => !archived.has(id)));
    expect(await runtime.redis.strLen(block(channelId, 0))).toBe(1);
    await fc.assert(fc.asyncProperty(questionsHere(), expectAgreement), { numRuns: 6 });
    await bringBack([own[77]?.id ?? 0, own[5]?.id ?? 0, own[4_000]?.id ?? 0]);
    await fc.assert(fc.asyncProperty(questionsHere(), expectAgreement), { numRuns: 10 });
  }, 300_000);
});

test("an archived shipment is read as it was", async () => {
  const { id } = rows.find((row) => !archived.has(row.id)) ?? { id: 0 };
  const [before] = await readShipments(runtime.redis, [id]);
  await moveAway([id]);
  expect(await readShipments(runtime.redis, [id])).toEqual([]);
  const read = () =>
    readAnywhere<StoredShipment>(runtime.redis, archive, [id], {
      channelIds,
      readHot: async (ids) => {
        const hot = await readShipments(runtime.redis, ids);
        return new Map(hot.map((one) => [one.record.id, one]));
      },
      thaw: ({ facts }) => facts.shipment,
    });
  expect([...(await read()).values()]).toEqual(before ? [before] : []);
  await bringBack([id]);
  expect([...(await read()).values()]).toEqual(before ? [before] : []);
});

describe("the index of the archive", () => {
  const common = { companyId: 0, trackingNumber: null, exact: {}, statuses: null };
  const ranges = { shipFrom: null, shipTo: null, updatedFrom: null };
  const order = { by: "upd", descending: true } as const;
  let counting: Counting;
  beforeAll(async () => {
    const summary = await readArchiveSummary(runtime.redis, companyId);
    if (!summary) throw new Error("nothing is archived");
    counting = summary;
  });
  const asked = (members: Partial<ArchiveQuestion["query"]> = {}): ArchiveQuestion => ({
    query: { ...common, ...ranges, order, channelIds, companyId, ...members },
    counting,
  });

  async function rowsOfBatch(batch: number): Promise<number> {
    const query = `SELECT count() AS found FROM archived_index WHERE batch = ${batch}`;
    const answer = await clickhouse.query({ query, format: "JSONEachRow" });
    const [row] = await answer.json<{ found: number | string }>();
    return Number(row?.found);
  }

  const hits: SearchableArchive["hits"] = (...asking) => answered(() => archive.hits(...asking));

  test.each([CHANNELS_IN_ORDER, CHANNELS_IN_ORDER + 1])(
    "has the same order for %d channels",
    async (count) => {
      const others = Array.from({ length: count - channelIds.length }, (_, at) => 1_000_000 + at);
      for (const by of ORDERS) {
        for (const descending of [false, true]) {
          const own = asked({ order: { by, descending } });
          const more = asked({ order: { by, descending }, channelIds: [...channelIds, ...others] });
          const expected = await hits(own, 30, 200);
          expect(expected).toHaveLength(200);
          expect(await hits(more, 30, 200)).toEqual(expected);
        }
      }
    },
  );

  test.each([ABSENT_IN_ORDER / 2, ABSENT_IN_ORDER / 2 + 1, 20_000])(
    "has the same order where %d rows of shipments that came back are still there",
    async (count) => {
      const own = asked();
      const expected = await hits(own, 0, 200);
      const names = Array.from({ length: count - own.counting.absentRows.length }, (_, at) => {
        return `${8_000_000_000 + at} 900001`;
      });
      const absentRows = [...own.counting.absentRows, ...names];
      const more = { ...own, counting: { ...own.counting, absentRows } };
      expect(await hits(more, 0, 200)).toEqual(expected);
      expect(await archive.count(more)).toEqual(await archive.count(own));
    },
  );

  test.each([
    ["all hits before a page that ends where it gives all", 2_000, 1],
    ["marks on the way to a page that ends one further", 2_001, 128],
  ])("is asked for %s", async (_, end, distance) => {
    const distances: number[] = [];
    const watched: SearchableArchive = {
      ...archive,
      marks(question, apart, to) {
        distances.push(apart);
        return archive.marks(question, apart, to);
      },
    };
    await searchBoth(
      runtime.redis,
      watched,
      queryOf(company, { offset: end - 20, limit: 20 }),
      2_000,
    );
    expect(distances).toEqual([distance]);
  });

  test("a page far behind the last one reads no rows", async () => {
    const unread = () => Promise.reject(new Error("rows of the archive were read"));
    const watched = { ...archive, marks: unread, hits: unread };
    const query = queryOf(company, { offset: 1_000_000_000, limit: 100 });
    const page = await searchBoth(runtime.redis, watched, query);
    expect(page).toMatchObject({ total: rows.length, hits: [] });
  });

  test("more rows and batches that do not count than go into one statement are deleted, and their marks", async () => {
    const { redis } = runtime;
    const keys = companyKeys(companyPartition(companyId));
    const [rowsKey, batchesKey] = [keys.absentRows(companyId), keys.absentBatches(companyId)];
    const numbers = Array.from({ length: DELETED_TOGETHER + 1 }, (_, at) => 8_000_000_000 + at);
    const old = (value: string) => ({ score: 1, value });
    await redis.zAdd(
      rowsKey,
      numbers.map((id) => old(`${id} 900001`)),
    );
    await redis.zAdd(
      batchesKey,
      numbers.map((id) => old(String(id))),
    );
    const last = numbers.at(-1) ?? 0;
    await clickhouse.command({
      query: `INSERT INTO archived_index SELECT * REPLACE (${last} AS batch) FROM archived_index
              WHERE channel > 0 AND kind = 5 LIMIT 10`,
    });
    expect(await rowsOfBatch(last)).toBe(10);
    await deleteAbsent(opened.deps(), companyId);
    expect(await redis.zCount(rowsKey, 1, 1)).toBe(0);
    expect(await redis.zCount(batchesKey, 1, 1)).toBe(0);
    expect(await rowsOfBatch(last)).toBe(0);
  }, 120_000);

  test("a statement has up to 16 MiB, with one more byte the engine refuses it, and a search that it refuses is 503", async () => {
    const statement = (bytes: number) => {
      const [before, after] = ["SELECT length('", "')"];
      return `${before}${"x".repeat(bytes - before.length - after.length)}${after}`;
    };
    await clickhouse.command({ query: statement(STATEMENT_BYTES) });
    await expect(clickhouse.command({ query: statement(STATEMENT_BYTES + 1) })).rejects.toThrow(
      "Max query size exceeded",
    );
    const rename = (from: string, to: string) =>
      clickhouse.command({
        query: `RENAME TABLE archived_index${from} TO archived_index${to}, archived_shipments${from} TO archived_shipments${to}`,
      });
    await rename("", "_away");
    const refused = archive.hits(asked(), 0, 200);
    await expect(refused).rejects.toMatchObject({ status: 503, code: "ARCHIVE_UNAVAILABLE" });
    await rename("_away", "");
  });

  test("counts the same while rows that do not count are inserted and deleted", async () => {
    const question = asked({ exact: { custom1: "even" } });
    const expected = await archive.count(question);
    expect(expected).toBeGreaterThan(100);
    const counted: number[] = [];
    let ended = false;
    const counts = (async () => {
      while (!ended) counted.push(await archive.count(question));
    })();
    const pending: number[] = [];
    for (let batch = 800_000; counted.length < 12; batch += 1) {
      await clickhouse.command({
        query: `INSERT INTO archived_index SELECT * REPLACE (${batch} AS batch) FROM archived_index
                WHERE channel > 0 AND kind = 5 AND batch < 800000 LIMIT 100`,
      });
      pending.push(batch);
      if (pending.length === 8) await deleteRows(clickhouse, companyId, [], pending.splice(0, 6));
    }
    ended = true;
    await counts;
    expect(new Set(counted)).toEqual(new Set([expected]));
    await deleteRows(clickhouse, companyId, [], pending);
  }, 300_000);

  test("counts the same row by row, where a statement does not read at one moment", async () => {
    const other = await openBare(runtime.config, { enable_shared_storage_snapshot_in_query: 0 });
    expect(await engineOf(other)).toMatchObject({ readsOneMoment: false });
    expect(await engineOf(clickhouse)).toMatchObject({ readsOneMoment: true });
    const some = [asked(), asked({ exact: { custom1: "even" } }), asked({ statuses: ["PENDING"] })];
    for (const question of some) {
      const expected = await archive.count(question);
      expect(expected).toBeGreaterThan(100);
      expect(await countHits(other, runtime.secrets.vault, question)).toBe(expected);
    }
    await other.close();
  });

  test("answers the same whether what matches is found by its values or in its order", async () => {
    const some = [
      asked({ exact: { custom1: "even" } }),
      asked({
        exact: { custom1: "even", custom2: "third-1" },
        statuses: ["IN_TRANSIT", "DELIVERED"],
      }),
      asked({ shipFrom: FIRST_DAY + 3, shipTo: FIRST_DAY + 20 }),
      asked({ updatedFrom: 1, order: { by: "ship", descending: false } }),
    ];
    for (const question of some) {
      expect(await archive.count(question)).toBeGreaterThan(100);
      const many = { ...question, total: MANY };
      expect(kindInOrder(many, 50)).toBe(question.query.order.by);
      const expected = await hits(question, 10, 40);
      expect(await hits(many, 10, 40)).toEqual(expected);
      const marks = await archive.marks(question, 7, 50);
      expect(await archive.marks(many, 7, 50)).toEqual(marks);
      const between = { from: marks[2], to: marks[4] };
      const part = await hits({ ...question, ...between }, 0, 100);
      expect(part).toEqual(await hits(question, 14, 15));
      expect(await hits({ ...many, ...between }, 0, 100)).toEqual(part);
    }
  });

  test.each([
    ["fewer than many matches", MANY - 1, 1, "custom1"],
    ["many matches", MANY, 1, "upd"],
    ["many matches, for a page that ends at one in twenty", MANY, MANY / 20, "upd"],
    ["many matches, for a page that ends later", MANY, MANY / 20 + 1, "custom1"],
  ])("%s", (_, total, end, kind) => {
    expect(kindInOrder({ ...asked({ exact: { custom1: "x" } }), total }, end)).toBe(kind as Kind);
  });

  test("has all rows of an insert that failed while they were written and was repeated", async () => {
    const left = rows.flatMap(({ id }) => (archived.has(id) ? [] : [id])).slice(0, 10);
    const alter = (change: string) =>
      clickhouse.command({ query: `ALTER TABLE archived_index ${change}` });
    await alter("ADD CONSTRAINT refused CHECK channel = 0");
    const [row] = await readLeaving(runtime.redis, left.slice(0, 1));
    if (!row) throw new Error("no shipment is left");
    const written = archiveRow(runtime.secrets.vault, row, 900_000, "2026-11-22");
    await expect(insertArchived(clickhouse, [written])).rejects.toThrow();
    await alter("DROP CONSTRAINT refused");
    await insertArchived(clickhouse, [written]);
    await insertArchived(clickhouse, [written]);
    const counted = await rowsOf<{ n: string }>(
      `SELECT count() AS n FROM archived_shipments WHERE batch = 900000
       UNION ALL SELECT count() AS n FROM archived_index WHERE batch = 900000 AND kind = 0`,
    );
    expect(counted.map(({ n }) => Number(n))).toEqual([1, 1]);
    await deleteRows(clickhouse, companyId, [`${row.whole.id} 900000`], []);
    const after = await rowsOf(
      `SELECT id FROM archived_shipments WHERE batch = 900000
       UNION ALL SELECT id FROM archived_index WHERE batch = 900000`,
    );
    expect(after).toEqual([]);
  });
});

test("no name of a recipient stands in ClickHouse in clear", async () => {
  const answer = await clickhouse.query({
    query:
      "SELECT count() AS n FROM archived_shipments WHERE match(concat(event_ids, occurred, rest, words, sealed), 'Rossi|example.test') OR match(rest, 'N[0-9]{2}|odd-')",
    format: "JSONEachRow",
  });
  expect(await answer.json<{ n: number }>()).toEqual([{ n: 0 }]);
});
