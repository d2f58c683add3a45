/** A move to the archive that stops at any step, or that another process overtakes, and an archive that is away. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { readRows } from "#analytics/archive/archive-table.ts";
import { moveToArchive, SKIPPED_KEPT } from "#analytics/archive/archiver.ts";
import { recheckDamaged } from "#analytics/archive/recheck-damaged.ts";
import { ARCHIVE_WAITING, type OpenArchive, openArchive } from "#analytics/archive.ts";
import { ArchiveUnreadable, readShipmentsAnywhere } from "#core/archive/store/archive.ts";
import { nextBatches, readSkipped, SKIPPED_FROM } from "#core/archive/store/archive-summary.ts";
import { RECORD } from "#core/archive/store/archived-texts.ts";
import { bringBack } from "#core/archive/store/bring-back.ts";
import {
  DAMAGED_ROWS_KEPT,
  forgetDamaged,
  noteDamaged,
  readDamaged,
} from "#core/archive/store/damaged-rows.ts";
import { markBatch } from "#core/archive/store/held-channels.ts";
import { type Leaving, removeShipments } from "#core/archive/store/remove-shipments.ts";
import { restoreShipments } from "#core/archive/store/restore-shipments.ts";
import { encodeLoggedEvent } from "#core/events/store/event-log.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { MAX_TRIES, readDueRetries, settleRetries } from "#core/platform/log/retries.ts";
import { binary } from "#core/platform/redis/client.ts";
import { companyKeys, companyPartition, eventLogs, retriesKey } from "#core/platform/redis/keys.ts";
import { LockLost } from "#core/platform/redis/lock.ts";
import { searchBoth } from "#core/search/store/archive-search.ts";
import { readShipments } from "#core/shipments/store/shipments.ts";
import { readMomentAnywhere } from "#core/webhooks/store/shipment-moment.ts";
import { trackHandler } from "#processors/track/track.ts";
import { event } from "#test/support/clients/courier.ts";
import { applyEvents } from "#test/support/data/facts.ts";
import { type Asked, queryOf } from "#test/support/data/searched-shipments.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { deliver, held, openTestArchive, type TestArchive } from "#test/support/product/archive.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { passTime } from "#test/support/product/webhooks.ts";

/** Nothing listens there. */
const AWAY = "http://nobody:nothing@127.0.0.1:1/none";

let runtime: TestRuntime;
let opened: TestArchive;
let clickhouse: TestArchive["clickhouse"];
let archive: OpenArchive;
let away: OpenArchive;
let companyId = 0;
let channelId = 0;
let counter = 0;

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup());
  opened = await openTestArchive(runtime);
  ({ clickhouse, archive, companyId, channelId } = opened);
  away = openArchive({ ...runtime.config, clickhouseUrl: AWAY }, runtime.secrets.vault);
}, 300_000);

afterAll(async () => {
  await Promise.all([opened.end(), away.close()]);
  await runtime.end();
});

/** All that the tests have created. */
let all: number[] = [];
let ids: number[] = [];

beforeEach(async () => {
  const numbers = Array.from({ length: 5 }, () => {
    counter += 1;
    return `CRASH${counter}`;
  });
  ids = await deliver(runtime, numbers);
  all = [...all, ...ids];
});

const query = (members: Asked = {}) =>
  queryOf({ companyId, channelIds: [channelId] }, { limit: 500, ...members });

/** Each shipment once, in every order. */
async function expectWhole(): Promise<void> {
  for (const by of ["id", "ship", "upd"] as const) {
    const page = await searchBoth(
      runtime.redis,
      archive,
      query({ order: { by, descending: false } }),
    );
    const found = page.hits.map(({ id }) => id).sort((one, other) => one - other);
    expect({ total: page.total, found }).toEqual({ total: all.length, found: all });
  }
}

function lateEvent(shipmentId: number, at: number) {
  const one = event({ trackingNumber: "any" });
  const logged = { courier: "GLS_ITA", factKey: one.eventId.slice(-11), event: one };
  const line = encodeLoggedEvent({ ...logged, shipmentId, receivedAtMs: 1, messageIndex: at });
  return { key: eventLogs()[0] ?? "", id: `1-${at}`, fields: { e: line } };
}

const leavingOf = (some: readonly number[]) => opened.leavingOf(some);
const insert = (leaving: readonly Leaving[], batch: number) => opened.insert(leaving, batch);
const move = (some: readonly number[]) => opened.move(some);
const rowsOf = (some: readonly number[]) => opened.rowsOf(some);

describe("a process that dies", () => {
  test("after its number was allocated a batch leaves nothing behind", async () => {
    await nextBatches(runtime.redis, companyId, 3);
    await expectWhole();
    expect(await move(ids)).toBe(5);
    await expectWhole();
  });

  test("after the insert has shipments that are in Redis alone, and whoever goes on moves them", async () => {
    await insert(await leavingOf(ids), await nextBatches(runtime.redis, companyId, 1));
    await expectWhole();
    expect(await move(ids)).toBe(5);
    await expectWhole();
    expect(await readShipments(runtime.redis, ids)).toEqual([]);
    expect(await rowsOf(ids)).toBe(10);
    await opened.deleteObsolete();
    expect(await rowsOf(ids)).toBe(5);
    await expectWhole();
  });
});

test("a number of a batch that was settled is not allocated again after a failover has lost its allocation", async () => {
  const { archived } = companyKeys(companyPartition(companyId));
  await move(ids.slice(0, 2));
  const settled = Number(await runtime.redis.hGet(archived(companyId), "batch"));
  await runtime.redis.hSet(archived(companyId), "next", String(settled - 1));
  expect(await nextBatches(runtime.redis, companyId, 2)).toBe(settled + 1);
  expect(await move(ids.slice(2))).toBe(3);
  await expectWhole();
});

test("a process that was overtaken removes nothing, and its rows never count", async () => {
  const [late, next] = [ids.slice(0, 2), ids.slice(2)];
  const leaving = await leavingOf(late);
  const batch = await nextBatches(runtime.redis, companyId, 1);
  expect(await move(next)).toBe(3);
  await insert(leaving, batch);
  expect(await removeShipments(runtime.redis, companyId, batch, leaving)).toBeNull();
  await expectWhole();
  expect(await readShipments(runtime.redis, late)).toHaveLength(2);
});

test("a shipment that changes between the insert and its removal stays, as it is now", async () => {
  const leaving = await leavingOf(ids);
  const batch = await nextBatches(runtime.redis, companyId, 1);
  await insert(leaving, batch);
  const [changed = 0] = ids;
  await applyEvents(runtime, [{ shipmentId: changed, code: "HLD" }]);
  const removed = await removeShipments(runtime.redis, companyId, batch, leaving);
  expect(removed).toEqual([false, true, true, true, true]);
  await expectWhole();
  const [stored] = await readShipments(runtime.redis, [changed]);
  expect(stored?.state.keys).toHaveLength(2);
});

test("a batch that names a shipment twice is refused as a whole", async () => {
  const leaving = await leavingOf(ids);
  const batch = await nextBatches(runtime.redis, companyId, 1);
  await insert(leaving, batch);
  const twice = [...leaving, ...leaving.slice(0, 1)];
  await expect(removeShipments(runtime.redis, companyId, batch, twice)).rejects.toThrow(
    "a shipment is named twice",
  );
  await expectWhole();
  expect(await readShipments(runtime.redis, ids)).toHaveLength(5);
});

describe("a process that is paused for longer than any mark was kept", () => {
  const deleteObsolete = () => opened.deleteObsolete();

  test("writes rows that never count, which are deleted, and a late event finds the others", async () => {
    const leaving = await leavingOf(ids);
    const batch = await nextBatches(runtime.redis, companyId, 1);
    expect(await move(ids)).toBe(5);
    await deleteObsolete();
    await insert(leaving, batch);
    await expectWhole();
    expect(await rowsOf(ids)).toBe(10);
    const [late = 0] = ids;
    const rows = await archive.read([late], [channelId]);
    expect(await restoreShipments(runtime.redis, rows)).toEqual([late]);
    await expectWhole();
    expect(await move([late])).toBe(1);
    await deleteObsolete();
    expect(await rowsOf(ids)).toBe(5);
    await insert(leaving, batch);
    await expectWhole();
    await deleteObsolete();
  });

  test("inserts nothing once its lock is lost while it waits for ClickHouse", async () => {
    let isLost = false;
    const clickhouseAfterPause = async () => {
      isLost = true;
      return clickhouse;
    };
    const assertHeld = async () => {
      if (isLost) throw new LockLost();
    };
    const deps = opened.deps({ clickhouse: clickhouseAfterPause });
    const leaving = await leavingOf(ids);
    await expect(moveToArchive(deps, companyId, leaving, assertHeld)).rejects.toThrow(LockLost);
    expect(await rowsOf(ids)).toBe(0);
    await expectWhole();
  });

  test(`is guarded against by ${SKIPPED_KEPT} marks, of which the oldest go first, and those of removed batches`, async () => {
    const { redis } = runtime;
    const { absentBatches, archived } = companyKeys(companyPartition(companyId));
    const key = absentBatches(companyId);
    await redis.del(key);
    const marks = Array.from({ length: SKIPPED_KEPT }, (_, at) => 10_000_000 + at);
    const add = (batches: readonly number[]) =>
      redis.zAdd(
        key,
        batches.map((batch) => ({ score: SKIPPED_FROM + batch, value: String(batch) })),
      );
    await add(marks);
    await deleteObsolete();
    expect(await readSkipped(redis, companyId)).toEqual(marks);
    await add([marks.length + 10_000_000]);
    await deleteObsolete();
    expect((await readSkipped(redis, companyId)).slice(0, 1)).toEqual([10_000_001]);
    expect(await redis.zCard(key)).toBe(SKIPPED_KEPT);
    await redis.hSet(archived(companyId), "floor", "10000003");
    await deleteObsolete();
    expect((await readSkipped(redis, companyId))[0]).toBe(10_000_003);
    await redis.hDel(archived(companyId), "floor");
    await redis.del(key);
    await expectWhole();
  });

  test("and one that stops gives the numbers back that it inserted nothing under", async () => {
    await passTime(runtime, 31 * 86_400);
    const before = await nextBatches(runtime.redis, companyId, 1);
    let isStopping = false;
    const pace = async () => {
      isStopping = (await nextNumber()) > before;
    };
    expect(await opened.archiveNow({ pace, isStopping: () => isStopping })).toBe(0);
    expect(isStopping).toBe(true);
    expect(await nextBatches(runtime.redis, companyId, 1)).toBe(before + 1);
    await expectWhole();
  });

  async function nextNumber(): Promise<number> {
    const { archived } = companyKeys(companyPartition(companyId));
    return Number(await runtime.redis.hGet(archived(companyId), "next"));
  }
});

describe("a row that cannot be opened", () => {
  async function seal(id: number, bytes: string): Promise<void> {
    await clickhouse.command({
      query: `ALTER TABLE archived_shipments UPDATE sealed = base64Decode('${bytes}') WHERE id = ${id}`,
      clickhouse_settings: { mutations_sync: "1" },
    });
  }

  test("keeps neither a page nor the late events of others, and its own are not lost", async () => {
    const [bad = 0, good = 0, ...others] = ids;
    await move(ids);
    const [row] = await readRows(clickhouse, [bad], [channelId]);
    await seal(bad, btoa("spoilt"));
    const { redis, live, config } = runtime;
    const found = await readShipmentsAnywhere(redis, archive, ids, [channelId]);
    expect(found.map(({ record }) => record.id)).toEqual([good, ...others]);
    expect(await readShipmentsAnywhere(redis, archive, [bad], [channelId])).toEqual([]);
    await expect(readMomentAnywhere(redis, archive, bad, [channelId])).rejects.toThrow(
      ArchiveUnreadable,
    );
    const late = (some: readonly number[]) => some.map((id, at) => lateEvent(id, at));
    const handle = trackHandler({ redis, live, eventsPerDay: config.eventsPerDay, archive });
    const failures = [...(await handle(late([bad, good]))), ...(await handle(late([bad])))];
    expect(failures.map(({ entry, waits }) => [entry.id, waits])).toEqual([
      ["1-0", false],
      ["1-0", false],
    ]);
    const [stored] = await readShipments(redis, [good]);
    expect(stored?.state.keys).toHaveLength(2);
    await seal(bad, row?.sealed ?? "");
    expect(await handle(late([bad]))).toEqual([]);
    await expectWhole();
  });

  const damagedIds = async () =>
    (await readDamaged(runtime.redis)).map(({ shipmentId }) => shipmentId);
  const recheck = () => recheckDamaged(opened.deps());

  test("is kept for operators until it can be opened again, and only if it counts", async () => {
    const [bad = 0, back = 0, mended = 0] = ids;
    await move(ids);
    const [row] = await readRows(clickhouse, [mended], [channelId]);
    const { redis } = runtime;
    await forgetDamaged(redis, await readDamaged(redis));
    await restoreShipments(redis, await archive.read([back], [channelId]));
    for (const id of [bad, back, mended]) await seal(id, btoa("spoilt"));
    await readShipmentsAnywhere(redis, archive, ids, [channelId]);
    await bringBack(redis, archive, ids, [channelId]);
    expect(await damagedIds()).toEqual([bad, mended]);
    expect(await recheck()).toBe(2);
    await seal(mended, row?.sealed ?? "");
    expect(await recheck()).toBe(1);
    expect(await damagedIds()).toEqual([bad]);
    await expectWhole();
  });

  test("or whose shipment is not whole stays there, and the others of its group come back", async () => {
    const [bad = 0, ...others] = ids;
    const { redis } = runtime;
    const leaving = (await leavingOf(ids)).map((one) => {
      const texts = new Map(one.texts);
      if (one.whole.id === bad) texts.delete(RECORD);
      return { ...one, texts };
    });
    expect(await moveToArchive(opened.deps(), companyId, leaving, held)).toBe(5);
    const { back, unreadable } = await bringBack(redis, archive, ids, [channelId]);
    expect([back, unreadable]).toEqual([new Set(others), new Set([bad])]);
    expect(await damagedIds()).toContain(bad);
    await expectWhole();
  });

  test(`is listed among the first ${DAMAGED_ROWS_KEPT} alone`, async () => {
    const { redis } = runtime;
    await forgetDamaged(redis, await readDamaged(redis));
    const rows = Array.from({ length: DAMAGED_ROWS_KEPT }, (_, at) => {
      return { companyId: 1, shipmentId: at, batch: 1 };
    });
    await noteDamaged(redis, rows);
    expect(await readDamaged(redis)).toHaveLength(DAMAGED_ROWS_KEPT);
    await noteDamaged(redis, [{ companyId: 9, shipmentId: 9, batch: 9 }]);
    const listed = await readDamaged(redis);
    expect(new Set(listed.map(({ companyId: of }) => of))).toEqual(new Set([1]));
    expect(listed).toHaveLength(DAMAGED_ROWS_KEPT);
    await forgetDamaged(redis, listed);
    expect(await readDamaged(redis)).toEqual([]);
  });
});

describe("a shipment that cannot be archived stays, and the others move", () => {
  test("where its state cannot be read", async () => {
    const [bad = 0, ...others] = ids;
    const { shipment } = companyKeys(companyPartition(companyId));
    const bytes = await binary(runtime.redis).hGet(shipment(bad), "st");
    await runtime.redis.hSet(shipment(bad), "st", "spoilt");
    await passTime(runtime, 31 * 86_400);
    expect(await opened.archiveNow()).toBeGreaterThanOrEqual(4);
    await expectWhole();
    expect(await readShipments(runtime.redis, others)).toEqual([]);
    await runtime.redis.hSet(shipment(bad), "st", bytes ?? "");
    expect(await opened.archiveNow()).toBe(1);
    await expectWhole();
  });

  test("where ClickHouse refuses its row", async () => {
    const [, bad = 0] = ids;
    const alter = (change: string) =>
      clickhouse.command({ query: `ALTER TABLE archived_shipments ${change}` });
    await alter(`ADD CONSTRAINT refused CHECK id != ${bad}`);
    expect(await move(ids)).toBe(4);
    await expectWhole();
    expect(await readShipments(runtime.redis, ids)).toHaveLength(1);
    await alter("DROP CONSTRAINT refused");
    expect(await move([bad])).toBe(1);
    await expectWhole();
  });
});

test("shipments that come back while the others are listed do not make these move twice", async () => {
  const early = ids.slice(0, 3);
  await move(early);
  await passTime(runtime, 31 * 86_400);
  let paces = 0;
  await opened.archiveNow({
    async pace() {
      paces += 1;
      if (paces > 1) return;
      await restoreShipments(runtime.redis, await archive.read(early, [channelId]));
    },
  });
  await expectWhole();
  const found = await readShipmentsAnywhere(runtime.redis, archive, ids, [channelId]);
  expect(found.map(({ record }) => record.id)).toEqual(ids);
});

test("two processes bring a shipment back once", async () => {
  await move(ids);
  const [first, second] = await Promise.all([1, 2].map(() => archive.read(ids, [channelId])));
  const outcomes = await Promise.all(
    [first, second].map((some = []) => restoreShipments(runtime.redis, some)),
  );
  expect(outcomes.flat().sort((one, other) => one - other)).toEqual(ids);
  await expectWhole();
});

describe("while the archive is away", () => {
  test("a question that needs only Redis is answered", async () => {
    await move(ids.slice(0, 2));
    const newest = await searchBoth(runtime.redis, away, query({ limit: 3 }));
    expect(newest.hits.map(({ id }) => id)).toEqual(all.slice(-3).reverse());
    expect(newest.total).toBe(all.length);
    const since = Math.floor(runtime.live.now() / 1_000) + 60;
    await searchBoth(runtime.redis, away, query({ updatedFrom: since }));
    await searchBoth(runtime.redis, away, query({ statuses: ["IN_TRANSIT"] }));
  });

  test("any other is refused as unavailable", async () => {
    await move(ids.slice(0, 2));
    const asked = searchBoth(runtime.redis, away, query());
    expect(asked).rejects.toBeInstanceOf(Problem);
    await asked.catch(({ status, code }) =>
      expect([status, code]).toEqual([503, "ARCHIVE_UNAVAILABLE"]),
    );
  });

  test("a late event waits without end, and the others are applied", async () => {
    const [archived = 0, hot = 0] = ids;
    await move([archived]);
    const { redis, live, config } = runtime;
    const deps = { redis, live, eventsPerDay: config.eventsPerDay };
    const items = [archived, hot].map(lateEvent);
    const failures = await trackHandler({ ...deps, archive: away })(items);
    expect(failures.map(({ entry, waits }) => [entry.id, waits])).toEqual([["1-0", true]]);
    const [stored] = await readShipments(redis, [hot]);
    expect(stored?.state.keys).toHaveLength(2);
    expect(await trackHandler({ ...deps, archive })(items)).toEqual([]);
    const [back] = await readShipments(redis, [archived]);
    expect(back?.state.keys).toHaveLength(2);
    await expectWhole();
  });

  test("it never becomes a dead letter", async () => {
    const { redis } = runtime;
    const [log = ""] = eventLogs();
    const key = retriesKey(log, "track");
    const text = JSON.stringify({ id: "1-0", entry: "{}", tries: 0, waited: 1 });
    await redis.zAdd(key, { score: 0, value: text });
    await redis.zAdd(`${log}:ages:track`, { score: 0, value: text });
    for (let round = 0; round <= MAX_TRIES; round += 1) {
      const due = await readDueRetries(redis, [log], "track", 10);
      expect(due.map(({ tries }) => tries)).toEqual([0]);
      await settleRetries(
        redis,
        "track",
        due.map((retry) => ({ retry, reason: "away", waits: true })),
      );
      const [next = ""] = await redis.zRange(key, 0, -1);
      await redis.zAdd(key, { score: 0, value: next });
    }
  });
});

test("a batch is marked in place of its rows only where none of them counts", async () => {
  await move(ids);
  const [row] = await archive.read(ids, [channelId]);
  const [first = 0] = ids;
  const batch = row?.batch ?? 0;
  await restoreShipments(runtime.redis, await archive.read([first], [channelId]));
  await markBatch(runtime.redis, companyId, batch, ids);
  await expectWhole();
  await restoreShipments(runtime.redis, await archive.read(ids, [channelId]));
  await markBatch(runtime.redis, companyId, batch, ids);
  const { absentBatches } = companyKeys(companyPartition(companyId));
  expect(await runtime.redis.zScore(absentBatches(companyId), String(batch))).not.toBeNull();
  await expectWhole();
});

test(`${ARCHIVE_WAITING} questions wait for the archive, and a further one is refused at once`, async () => {
  const silent = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Promise(() => {}) });
  const clickhouseUrl = `http://name:word@127.0.0.1:${silent.port}/none`;
  const waiting = openArchive({ ...runtime.config, clickhouseUrl }, runtime.secrets.vault);
  let ended = 0;
  const asked = Array.from({ length: ARCHIVE_WAITING }, () =>
    waiting.read(ids, [channelId]).catch(() => (ended += 1)),
  );
  await expect(waiting.read(ids, [channelId])).rejects.toMatchObject({
    status: 503,
    code: "ARCHIVE_UNAVAILABLE",
  });
  expect(ended).toBe(0);
  await silent.stop(true);
  await Promise.all(asked);
  expect(ended).toBe(ARCHIVE_WAITING);
  await waiting.close();
});

test("rows that count no more are told by Redis only until they are deleted", async () => {
  await move(ids);
  await restoreShipments(runtime.redis, await archive.read(ids, [channelId]));
  const { absentRows } = companyKeys(companyPartition(companyId));
  expect(await runtime.redis.zCard(absentRows(companyId))).toBeGreaterThanOrEqual(5);
  await opened.deleteObsolete();
  expect(await runtime.redis.zCard(absentRows(companyId))).toBe(0);
  expect(await rowsOf(ids)).toBe(0);
  await expectWhole();
});
