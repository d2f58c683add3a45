/** Archived shipments whose time is over are removed for good, whatever stops in between. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { archiveRow } from "#analytics/archive/archive-rows.ts";
import { insertArchived } from "#analytics/archive/archive-table.ts";
import {
  deleteRetired,
  READ_AT_ONCE,
  RETIRED_TOGETHER,
  type RetentionDeps,
  retireShipments,
} from "#analytics/archive/retention.ts";
import { readShipmentsAnywhere } from "#core/archive/store/archive.ts";
import { nextBatches, readArchiveSummary } from "#core/archive/store/archive-summary.ts";
import { bringBack } from "#core/archive/store/bring-back.ts";
import { readLeaving } from "#core/archive/store/remove-shipments.ts";
import { restoreShipments } from "#core/archive/store/restore-shipments.ts";
import {
  noteRetiring,
  REMOVALS_KEPT,
  readForgottenRows,
  readRemovals,
  readRetirement,
  retireBatches,
} from "#core/archive/store/retirement.ts";
import { startConsumer } from "#core/platform/log/consumer.ts";
import { readLags } from "#core/platform/log/streams.ts";
import { isFileRewriteMarked } from "#core/platform/redis/embedded/file-rewrite.ts";
import { FILE_REWRITE_KEY } from "#core/platform/redis/keys.ts";
import { LockLost } from "#core/platform/redis/lock.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { searchBoth } from "#core/search/store/archive-search.ts";
import { addFurtherTexts, findByPart } from "#core/search/store/search-lines.ts";
import { applySetup } from "#core/setup/store/apply-setup.ts";
import { readHistory, readShipments } from "#core/shipments/store/shipments.ts";
import { readUnmappedCodes } from "#core/statuses/store/unmapped.ts";
import { startIngest } from "#ingest/main.ts";
import { referencesHandler } from "#processors/track/references.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { applyEvents } from "#test/support/data/facts.ts";
import { queryOf } from "#test/support/data/searched-shipments.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import {
  createAll,
  deliver,
  held,
  openTestArchive,
  type TestArchive,
} from "#test/support/product/archive.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { passTime } from "#test/support/product/webhooks.ts";

const MONTHS = 2;
const MONTH_SECONDS = 31 * 86_400;

let runtime: TestRuntime;
let opened: TestArchive;
let clickhouse: TestArchive["clickhouse"];
let archive: TestArchive["archive"];
let ingest: Running;
let companyId = 0;
let channelId = 0;
let counter = 0;
let ids: number[] = [];
let numbers: string[] = [];

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup());
  opened = await openTestArchive(runtime);
  ({ clickhouse, archive, companyId, channelId } = opened);
  ingest = await startIngest(runtime);
}, 300_000);

afterAll(async () => {
  await ingest.stop();
  await opened.end();
  await runtime.end();
});

const deps = (members: Partial<RetentionDeps> = {}): RetentionDeps => ({
  ...opened.deps(),
  log: runtime.log,
  months: MONTHS,
  waitMs: 0,
  appliedUntilMs: Date.now() + 1_000,
  ...members,
});

const step = (members: Partial<RetentionDeps> = {}) =>
  retireShipments(deps(members), companyId, held);

const create = (items: readonly string[], code = "acme-it") => createAll(runtime, items, code);

async function move(some: readonly number[]): Promise<void> {
  expect(await opened.move(some)).toBe(some.length);
}

/** Five delivered shipments in the archive, and time enough. Whatever was there before is gone. */
beforeEach(async () => {
  numbers = Array.from({ length: 5 }, () => {
    counter += 1;
    return `RET${counter}`;
  });
  ids = await deliver(runtime, numbers);
  await move(ids);
});

async function outcomeOf(members: Parameters<typeof event>[0]): Promise<string[]> {
  const { body } = await push(ingest.url ?? "", [event(members)]);
  return body.results.map(({ outcome }: { outcome: string }) => outcome);
}

/** Those of the test that are in an answer, each once. */
async function found(): Promise<number[]> {
  const asked = {
    statuses: ["DELIVERED"],
    order: { by: "id", descending: false },
    limit: 500,
  } as const;
  const query = queryOf({ companyId, channelIds: [channelId] }, asked);
  const page = await searchBoth(runtime.redis, archive, query);
  const own = page.hits.map(({ id }) => id);
  expect(page.total).toBe(own.length);
  const read = await readShipmentsAnywhere(runtime.redis, archive, ids, [channelId]);
  expect(read.map(({ record }) => record.id)).toEqual(own.filter((id) => ids.includes(id)));
  return own;
}

const rowsOf = (some: readonly number[]) => opened.rowsOf(some);

async function finish(): Promise<void> {
  for (let round = 0; round < 3; round += 1) await step();
  expect((await readRetirement(runtime.redis, companyId)).to).toBeNull();
}

describe("a shipment that was in the archive for so long", () => {
  test("is in no answer, its events are of an unknown number, and its number is free", async () => {
    await passTime(runtime, 3 * MONTH_SECONDS);
    const [number = ""] = numbers;
    expect(await step()).toBe(0);
    expect(await outcomeOf({ trackingNumber: number })).toEqual(["UNKNOWN_TRACKING"]);
    const byOrder = { externalId: `O-${number}`, senderAccount: "ACC-1" };
    const { trackingNumber: _, ...withoutNumber } = event(byOrder);
    const { body } = await push(ingest.url ?? "", [withoutNumber]);
    expect(body.results[0].outcome).toBe("UNKNOWN_TRACKING");
    expect(await found()).toEqual(ids);
    await runtime.redis.del(FILE_REWRITE_KEY);
    expect(await step()).toBe(5);
    expect(await isFileRewriteMarked(runtime.redis)).toBe(true);
    expect(await found()).toEqual([]);
    const [again = 0] = await create([number]);
    expect(again).toBeGreaterThan(ids.at(-1) ?? 0);
    expect(await outcomeOf({ trackingNumber: number })).toEqual(["ACCEPTED"]);
    const names = (await runtime.redis.keys("{[kt]*")).flatMap((key) => key.split(":"));
    expect(names.filter((name) => ids.map(String).includes(name))).toEqual([]);
    expect(await rowsOf(ids)).toBe(5);
    const byPart = async () => {
      const asked = { text: number.toLowerCase(), courier: "" };
      const lines = await findByPart(runtime.redis, companyId, [channelId], asked);
      return lines.ids.get(channelId) ?? [];
    };
    // As a search before the move had added it.
    const line = { companyId, channelId, shipmentId: ids[0] ?? 0, courier: "GLS_ITA" };
    await addFurtherTexts(runtime.redis, [{ ...line, text: number }]);
    await deleteRetired(deps(), companyId);
    expect(await rowsOf(ids)).toBe(5);
    expect(await byPart()).toEqual([...ids.slice(0, 1), again]);
    await deleteRetired(deps(), companyId, 0);
    expect(await rowsOf(ids)).toBe(0);
    // Nothing of what was removed can be searched, and the new shipment of the number can.
    expect(await byPart()).toEqual([again]);
  });

  test("leaves the lists of codes that nobody has mapped", async () => {
    const [own = 0] = await create(["RETX"]);
    await applyEvents(runtime, [{ shipmentId: own, code: "XYZ" }]);
    await move([own]);
    expect(await readUnmappedCodes(runtime.redis)).toHaveLength(1);
    await passTime(runtime, 3 * MONTH_SECONDS);
    await finish();
    await deleteRetired(deps(), companyId, 0);
    expect(await readUnmappedCodes(runtime.redis)).toEqual([]);
  });

  test("is not looked for in the rows that it leaves behind for an hour", async () => {
    await passTime(runtime, 3 * MONTH_SECONDS);
    await finish();
    expect(await rowsOf(ids)).toBe(5);
    const { back } = await bringBack(runtime.redis, archive, ids, [channelId]);
    expect(back).toEqual(new Set());
  });

  test("is told of in a report, with the day before which it was archived", async () => {
    await passTime(runtime, 3 * MONTH_SECONDS);
    const before = await readRemovals(runtime.redis, companyId);
    await finish();
    const [removal, ...others] = await readRemovals(runtime.redis, companyId);
    expect(others).toEqual(before);
    expect(removal?.shipments).toBe(5);
    const day = new Date(runtime.live.now()).toISOString().slice(0, 10);
    expect(String(removal?.archivedBefore) < day).toBe(true);
  });

  test("stays until then, and ClickHouse is asked about it once a day", async () => {
    await passTime(runtime, MONTH_SECONDS);
    expect(await step()).toBe(0);
    const away = async () => {
      throw new Error("ClickHouse was asked");
    };
    expect(await step({ clickhouse: away })).toBe(0);
    expect(await found()).toEqual(ids);
    expect(await outcomeOf({ trackingNumber: numbers[0] ?? "" })).toEqual(["ACCEPTED"]);
    await passTime(runtime, 86_400);
    await expect(step({ clickhouse: away })).rejects.toThrow("ClickHouse was asked");
    await passTime(runtime, 2 * MONTH_SECONDS);
    await finish();
  });

  test("stays without end where no time is set", async () => {
    await passTime(runtime, 100 * MONTH_SECONDS);
    expect(await step({ months: null })).toBe(0);
    expect(await found()).toEqual(ids);
    await finish();
  });
});

test("a process that dies at any step, or loses its lock, leaves each shipment whole or removed, and the next goes on", async () => {
  await passTime(runtime, 3 * MONTH_SECONDS);
  const reports = (await readRemovals(runtime.redis, companyId)).length;
  let isDone = false;
  for (let dies = 1; !isDone; dies += 1) {
    let steps = 0;
    const next = async () => {
      steps += 1;
      if (steps >= dies) throw new Error("it dies");
    };
    const failing = deps({
      clickhouse: async () => {
        await next();
        return clickhouse;
      },
    });
    // Each try goes one step further than the one before, from wherever that one has stopped.
    const outcome = await retireShipments(failing, companyId, next).catch(() => null);
    const own = await found();
    expect([ids, []]).toContainEqual(own);
    isDone = own.length === 0;
    expect(outcome === 5).toBe(isDone);
    expect(dies).toBeLessThan(30);
  }
  const removals = await readRemovals(runtime.redis, companyId);
  expect(removals.slice(0, removals.length - reports).map(({ shipments }) => shipments)).toEqual([
    5,
  ]);
});

describe("while shipments are being removed", () => {
  test("one that an event has brought back stays, is found by its events again, and moves again", async () => {
    await passTime(runtime, 3 * MONTH_SECONDS);
    const [back = 0, ...others] = ids;
    const [number = ""] = numbers;
    await step();
    await restoreShipments(runtime.redis, await archive.read([back], [channelId]));
    // Rows that no longer count tell which shipments have come back: they stay until the end.
    await opened.deleteObsolete();
    expect(await step()).toBe(4);
    expect(await found()).toEqual([back]);
    expect(await outcomeOf({ trackingNumber: number })).toEqual(["ACCEPTED"]);
    expect(await create([number])).toEqual([]);
    await move([back]);
    expect(await found()).toEqual([back]);
    expect(await outcomeOf({ trackingNumber: number })).toEqual(["ACCEPTED"]);
    expect(await readShipments(runtime.redis, others)).toEqual([]);
    await passTime(runtime, 3 * MONTH_SECONDS);
    await finish();
    expect(await found()).toEqual([]);
  });

  test("a process that is paused before it removes references leaves those that another has registered again", async () => {
    await passTime(runtime, 3 * MONTH_SECONDS);
    const { redis } = runtime;
    const [back = 0] = ids;
    let asked = 0;
    const assertHeld = async () => {
      asked += 1;
      if (asked > 2) throw new LockLost();
      if (asked < 2) return;
      // The lock was held; then the process sleeps, and another one brings the removal to its end.
      await step();
      await restoreShipments(redis, await archive.read([back], [channelId]));
      expect(await step()).toBe(4);
    };
    await expect(retireShipments(deps(), companyId, assertHeld)).rejects.toThrow(LockLost);
    expect(asked).toBe(3);
    expect(await outcomeOf({ trackingNumber: numbers[0] ?? "" })).toEqual(["ACCEPTED"]);
    expect(await create([numbers[0] ?? ""])).toEqual([]);
    expect(await found()).toEqual([back]);
    await move([back]);
    await passTime(runtime, 3 * MONTH_SECONDS);
    await finish();
    expect(await found()).toEqual([]);
  });

  test("one that comes back gets the events that were parked while it had no references", async () => {
    const { redis, live, log, config } = runtime;
    const tracking = { redis, live, eventsPerDay: config.eventsPerDay, onConflict: () => {} };
    const handler = referencesHandler(tracking);
    const source = { source: "change", group: "references", batch: 100 } as const;
    const references = startConsumer({ redis, log, handler, ...source });
    // Its creation would release them too, where it is handled only now.
    const isIdle = async () =>
      (await readLags(redis)).every(
        ({ group, entries }) => group !== "references" || entries === 0,
      );
    await eventually(isIdle, "the creations are handled");
    await passTime(runtime, 3 * MONTH_SECONDS);
    const [back = 0] = ids;
    const late = event({ trackingNumber: numbers[0] ?? "" });
    await step();
    await restoreShipments(redis, await archive.read([back], [channelId]));
    expect((await push(ingest.url ?? "", [late])).body.results[0].outcome).toBe("UNKNOWN_TRACKING");
    expect(await step()).toBe(4);
    const eventIds = async () => (await readHistory(redis, back)).map((fact) => fact.event.eventId);
    await eventually(async () => (await eventIds()).includes(late.eventId), "it is released");
    await references.stop();
    expect(await eventIds()).toHaveLength(2);
    await move([back]);
    await passTime(runtime, 3 * MONTH_SECONDS);
    await finish();
  });

  test("one that comes back stays in the lists of codes that nobody has mapped", async () => {
    const [own = 0] = await create(["RETY"]);
    await applyEvents(runtime, [{ shipmentId: own, code: "XYZ" }]);
    await move([own]);
    await passTime(runtime, 3 * MONTH_SECONDS);
    await step();
    await restoreShipments(runtime.redis, await archive.read([own], [channelId]));
    await finish();
    await deleteRetired(deps(), companyId, 0);
    const [code] = await readUnmappedCodes(runtime.redis);
    expect(code).toMatchObject({ code: "XYZ", shipments: 1 });
  });

  test("none leaves before every event that still found one is applied", async () => {
    await passTime(runtime, 3 * MONTH_SECONDS);
    const startedMs = Date.now();
    await step();
    expect(await step({ appliedUntilMs: startedMs })).toBe(0);
    expect(await step({ waitMs: 60_000 })).toBe(0);
    expect(await found()).toEqual(ids);
    expect(await step({ months: null })).toBe(5);
  });

  test("another company's shipment keeps the number that it shares with them", async () => {
    const [number = ""] = numbers;
    const [other = 0] = await create([number], "beta-it");
    await passTime(runtime, 3 * MONTH_SECONDS);
    await finish();
    expect(await found()).toEqual([]);
    expect(await outcomeOf({ trackingNumber: number })).toEqual(["ACCEPTED"]);
    expect(await readShipments(runtime.redis, [other])).toHaveLength(1);
    expect(await create([number], "beta-it")).toEqual([]);
  });
});

test("sender accounts that their channel has lost since find none of them", async () => {
  const { redis, live, secrets } = runtime;
  const other = testSetup();
  const courier = other.companies?.[0]?.channels?.[0]?.couriers?.[0];
  if (!courier) throw new Error("no courier");
  courier.senderAccounts = ["ACC-9"];
  await applySetup(redis, secrets.vault, other, live.now());
  await live.refresh();
  await passTime(runtime, 3 * MONTH_SECONDS);
  await finish();
  expect(await found()).toEqual([]);
  const { trackingNumber: _, ...byOrder } = event();
  const members = { externalId: `O-${numbers[0]}`, senderAccount: "ACC-1" };
  const { body } = await push(ingest.url ?? "", [{ ...byOrder, ...members }]);
  expect(body.results[0].outcome).toBe("UNKNOWN_TRACKING");
  await applySetup(redis, secrets.vault, testSetup(), live.now());
  await live.refresh();
});

describe("when time is up", () => {
  test(`references of ${READ_AT_ONCE} shipments are removed at once, and the next round goes on behind them`, async () => {
    const more = await create(
      Array.from({ length: READ_AT_ONCE - ids.length + 1 }, (_, at) => `RETN${at}`),
    );
    for (let from = 0; from < more.length; from += 100) await move(more.slice(from, from + 100));
    await passTime(runtime, 3 * MONTH_SECONDS);
    const parts: number[] = [];
    const pace = async () => void parts.push(await readForgottenRows(runtime.redis, companyId));
    expect(await step({ pace, isTimeUp: () => parts.length === 1 })).toBe(0);
    const last = event({ trackingNumber: `RETN${more.length - 1}` });
    expect((await push(ingest.url ?? "", [last])).body.results[0].outcome).toBe("ACCEPTED");
    expect((await readRetirement(runtime.redis, companyId)).forgottenAtMs).toBeNull();
    await step({ pace });
    expect(parts).toEqual([READ_AT_ONCE, READ_AT_ONCE + 1]);
    const again = event({ trackingNumber: `RETN${more.length - 1}` });
    expect((await push(ingest.url ?? "", [again])).body.results[0].outcome).toBe(
      "UNKNOWN_TRACKING",
    );
    await finish();
    await deleteRetired(deps({ isTimeUp: () => true }), companyId, 0);
    expect(await rowsOf(ids)).toBe(5);
    await deleteRetired(deps(), companyId, 0);
    expect(await rowsOf(ids)).toBe(0);
  });
});

test(`${RETIRED_TOGETHER} batches are removed together, and a further one with the next removal`, async () => {
  const { redis, secrets, live } = runtime;
  const [own = 0] = await create(["RETB"]);
  await applyEvents(runtime, [{ shipmentId: own, code: "DLV" }]);
  const leaving = await readLeaving(redis, [own]);
  const first = await nextBatches(redis, companyId, RETIRED_TOGETHER - 1);
  const day = new Date(live.now()).toISOString().slice(0, 10);
  const rows = leaving.flatMap((one) =>
    Array.from({ length: RETIRED_TOGETHER - 1 }, (_, at) =>
      archiveRow(secrets.vault, one, first + at, day),
    ),
  );
  await insertArchived(clickhouse, rows);
  await move([own]);
  await passTime(runtime, 3 * MONTH_SECONDS);
  // The batch of the other shipments, and those that were written for nothing.
  expect(await step()).toBe(0);
  expect((await readRetirement(redis, companyId)).to).toBe(first + RETIRED_TOGETHER - 1);
  expect(await step()).toBe(5);
  expect(await found()).toEqual([own]);
  await finish();
  expect(await found()).toEqual([]);
});

test(`the latest ${REMOVALS_KEPT} reports of removals are kept of a company`, async () => {
  const { redis } = runtime;
  for (let report = 1; report <= REMOVALS_KEPT + 1; report += 1) {
    const { floor = 0, moves = 0 } = (await readArchiveSummary(redis, companyId)) ?? {};
    await noteRetiring(redis, companyId, floor + 1, "2026-01-01");
    const terms = { from: floor, to: floor + 1, moves };
    const removal = { atMs: report, archivedBefore: "2026-01-01", shipments: report };
    expect(await retireBatches(redis, companyId, terms, [], removal)).toBe(true);
    const kept = (await readRemovals(redis, companyId)).filter(({ atMs }) => atMs <= report);
    expect(kept.map(({ atMs }) => atMs).at(-1)).toBe(Math.max(1, report - REMOVALS_KEPT + 1));
  }
});
