/**
 * Removes archived shipments that have been in the archive for too long, whole batches at a time, the oldest first. One process at a
 * time does it, under the archiver's lock; a crash at any step is repaired by going on with the step that was under way.
 *
 * | step                                           | from then on                                                       |
 * |------------------------------------------------|--------------------------------------------------------------------|
 * | 1. the batches are noted as retiring           | whoever goes on removes them to the end                            |
 * | 2. references and tracking numbers are removed | events are of an unknown number, and a number may be taken again   |
 * | 3. a minute later, and once every event that still found a reference is applied: shipments that have come back meanwhile get their references again, and the batches count no more | the others are removed |
 * | 4. an hour later they leave the lists of unmapped codes and the search by part, and their rows are deleted | ClickHouse removes them from the disk with its next merge |
 */

import {
  type ArchiveSummary,
  counts,
  readArchiveSummary,
} from "#core/archive/store/archive-summary.ts";
import type { ShipmentFacts, WholeShipment } from "#core/archive/store/archived-shipment.ts";
import {
  forgetNumbers,
  noteDeleted,
  noteForgotten,
  noteForgottenRows,
  noteRetiredBefore,
  noteRetiring,
  readDeletable,
  readForgottenRows,
  readRetirement,
  retireBatches,
} from "#core/archive/store/retirement.ts";
import type { Configuration } from "#core/configuration/store/configuration.ts";
import { forgetReferences } from "#core/events/store/compact-references.ts";
import { chunks } from "#core/platform/process/chunks.ts";
import type { Log } from "#core/platform/process/log.ts";
import { erasing } from "#core/platform/redis/embedded/file-rewrite.ts";
import type { Lock } from "#core/platform/redis/lock.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { monthsBefore, romeDate } from "#core/platform/time/rome-time.ts";
import { forgetLines } from "#core/search/store/search-lines.ts";
import { registerAgain } from "#core/shipments/store/register-shipments.ts";
import { forgetUnmapped, hasUnmapped } from "#core/statuses/store/unmapped.ts";
import { openRow } from "./archive-table.ts";
import { ABSENT_KEPT_MS, accountsOf, compactOf, type MoveDeps } from "./archiver.ts";
import {
  type BatchRange,
  countRange,
  deleteBatches,
  endOfRetired,
  type PlacedRow,
  readPlaces,
  readRowsOf,
} from "./retention-table.ts";

/** Batches that are removed together: at most 50,000 shipments. */
export const RETIRED_TOGETHER = limit(
  500,
  "batches of the archive removed together",
  "the next round",
);
/** No request that found a reference before it was removed is under way any more. */
export const RETIRING_WAIT_MS = limit(
  60_000,
  "time that the shipments of removed batches can still come back",
  "they are removed",
);
export const READ_AT_ONCE = limit(
  500,
  "rows of removed batches read at once for their references",
  "the next question",
);
/** Shipments that came back are looked for so many at once. */
const REGISTERED_AT_ONCE = 100;
/** Attempts to count what leaves while shipments move to the archive or back. */
const COUNTINGS = 20;

export interface RetentionDeps extends MoveDeps {
  readonly log: Pick<Log, "info" | "error">;
  /** Null: only what has begun is brought to its end. */
  readonly months: number | null;
  /** Every event received before this moment is applied, UTC milliseconds. */
  readonly appliedUntilMs: number;
  readonly waitMs: number;
  readonly pace: (workMs: number) => Promise<void>;
  readonly isStopping: () => boolean;
  /** The next round goes on. */
  readonly isTimeUp: () => boolean;
}

/** Batches of a company on their way out. */
interface Retiring {
  readonly companyId: number;
  readonly summary: ArchiveSummary;
  readonly range: BatchRange;
  /** The day before which they were archived, YYYY-MM-DD. */
  readonly before: string;
}

/** @returns how many shipments of a company are removed now */
export async function retireShipments(
  deps: RetentionDeps,
  companyId: number,
  assertHeld: Lock["assertHeld"],
): Promise<number> {
  const { redis, waitMs, appliedUntilMs } = deps;
  const summary = await readArchiveSummary(redis, companyId);
  if (!summary) return 0;
  const { to, before, forgottenAtMs, doneBefore } = await readRetirement(redis, companyId);
  const channelIds = [...summary.channels.keys()];
  if (to === null) return begin(deps, { companyId, summary, channelIds, doneBefore }, assertHeld);
  const retiring = { companyId, summary, range: { channelIds, from: summary.floor, to }, before };
  if (forgottenAtMs === null) return forget(deps, retiring, assertHeld);
  const isApplied = forgottenAtMs + waitMs < appliedUntilMs;
  return isApplied ? removeForGood(deps, retiring, assertHeld) : 0;
}

interface Company extends Pick<Retiring, "companyId" | "summary"> {
  readonly channelIds: readonly number[];
  /** As `Retirement` has it. */
  readonly doneBefore: string;
}

async function begin(
  deps: RetentionDeps,
  { companyId, summary, channelIds, doneBefore }: Company,
  assertHeld: Lock["assertHeld"],
): Promise<0> {
  const { redis, live, clickhouse, months } = deps;
  if (months === null) return 0;
  const before = monthsBefore(romeDate(live.now()), months);
  if (doneBefore >= before) return 0;
  const all = { channelIds, from: summary.floor, to: summary.batch + 1 };
  const to = await endOfRetired(await clickhouse(), all, before, RETIRED_TOGETHER);
  await assertHeld();
  if (to === null) {
    await noteRetiredBefore(redis, companyId, before);
    return 0;
  }
  await noteRetiring(redis, companyId, to, before);
  return forget(deps, { companyId, summary, range: { ...all, to }, before }, assertHeld);
}

/** Nothing finds these shipments any more, and their numbers are free. */
async function forget(
  deps: RetentionDeps,
  { companyId, summary, range }: Retiring,
  assertHeld: Lock["assertHeld"],
): Promise<0> {
  const { redis, live, clickhouse, pace } = deps;
  const configuration = await live.refresh();
  const isCounting = counts(summary);
  // Rows are added to these batches at most, and then never count: whoever goes on leaves out none.
  const places = await readPlaces(await clickhouse(), range);
  let rows = await readForgottenRows(redis, companyId);
  for (const part of chunks(places.slice(rows), READ_AT_ONCE)) {
    if (deps.isStopping() || deps.isTimeUp()) return 0;
    const startedMs = performance.now();
    await forgetPart(deps, configuration, part.filter(isCounting), assertHeld);
    rows += part.length;
    await noteForgottenRows(redis, companyId, range.to, rows);
    await pace(performance.now() - startedMs);
  }
  await assertHeld();
  await noteForgotten(redis, companyId, range.to);
  return 0;
}

/** @throws {LockLost} where another process may have ended the removal meanwhile; shipments that came back before are found again then */
async function forgetPart(
  deps: RetentionDeps,
  configuration: Configuration,
  places: readonly PlacedRow[],
  assertHeld: Lock["assertHeld"],
): Promise<void> {
  const own = await openPlaces(deps, places);
  await assertHeld();
  const references = own.flatMap((one) => {
    const shipmentId = one.whole.id;
    const { facts } = one;
    const accounts = [...new Set([...one.whole.accounts, ...accountsOf(facts, configuration)])];
    const whole = { ...one.whole, accounts };
    return compactOf({ whole, facts }).map(({ reference }) => ({ reference, shipmentId }));
  });
  await forgetReferences(deps.redis, references);
  const numbers = own.flatMap(({ whole: { id: shipmentId, numbers }, facts: { meta } }) => {
    const { channelId, courier } = meta;
    return numbers.map((number) => ({ shipmentId, channelId, courier, number }));
  });
  await forgetNumbers(deps.redis, numbers);
  try {
    await assertHeld();
  } catch (error) {
    for (const part of chunks(own, REGISTERED_AT_ONCE)) {
      const ids = part.map(({ whole }) => whole.id);
      await registerAgain(deps.redis, configuration, ids);
    }
    throw error;
  }
}

interface OpenRow {
  readonly whole: WholeShipment;
  readonly facts: ShipmentFacts;
}

async function openPlaces(
  { clickhouse, vault, log }: Pick<RetentionDeps, "clickhouse" | "vault" | "log">,
  places: readonly PlacedRow[],
): Promise<OpenRow[]> {
  const wanted = new Set(places.map(nameOf));
  const rows = await readRowsOf(await clickhouse(), places);
  return rows
    .filter((row) => wanted.has(nameOf(row)))
    .flatMap((row) => {
      try {
        return [openRow(vault, row)];
      } catch (error) {
        // It leaves all the same: one row must not keep the others for ever.
        log.error(
          { shipment: row.id, fault: (error as Error).name },
          "a row of the archive cannot be read",
        );
        return [];
      }
    });
}

function nameOf({ id, batch }: Pick<PlacedRow, "id" | "batch">): string {
  return `${id} ${batch}`;
}

/** The step that removes them for whoever reads. */
async function removeForGood(
  { redis, live, clickhouse, log }: RetentionDeps,
  { companyId, range, before }: Retiring,
  assertHeld: Lock["assertHeld"],
): Promise<number> {
  const client = await clickhouse();
  const configuration = await live.refresh();
  for (let counting = 0; counting < COUNTINGS; counting += 1) {
    const summary = await readArchiveSummary(redis, companyId);
    if (!summary) return 0;
    const isCounting = counts(summary);
    const back = (await readPlaces(client, range)).filter((place) => !isCounting(place));
    await assertHeld();
    for (const part of chunks(back, REGISTERED_AT_ONCE)) {
      await registerAgain(
        redis,
        configuration,
        part.map(({ id }) => id),
      );
    }
    const leaving = await countRange(client, range, summary);
    const shipments = leaving.reduce((sum, one) => sum + one.shipments, 0);
    const removal = { atMs: live.now(), archivedBefore: before, shipments };
    await assertHeld();
    const floor = { from: range.from, to: range.to, moves: summary.moves };
    const retire = () => retireBatches(redis, companyId, floor, leaving, removal);
    if (!(await erasing(redis, live.now(), retire))) continue;
    log.info({ companyId, shipments, archivedBefore: before }, "archived shipments removed");
    return shipments;
  }
  return 0;
}

export interface DeletionDeps
  extends Pick<
    RetentionDeps,
    "redis" | "clickhouse" | "vault" | "log" | "pace" | "isStopping" | "isTimeUp"
  > {}

/** Deletes the rows of removed batches once no answer can need them, the oldest first. */
export async function deleteRetired(
  deps: DeletionDeps,
  companyId: number,
  keptMs = ABSENT_KEPT_MS,
): Promise<void> {
  const { redis, clickhouse } = deps;
  const { floor, raisedAtMs, deleted } = await readDeletable(redis, companyId);
  // Redis' clock; next to an hour it does not matter how far ours is from it.
  if (floor <= deleted || Date.now() - raisedAtMs < keptMs) return;
  const summary = await readArchiveSummary(redis, companyId);
  if (!summary) return;
  const channelIds = [...summary.channels.keys()];
  for (let from = deleted; from < floor; from += RETIRED_TOGETHER) {
    const range = { channelIds, from, to: Math.min(floor, from + RETIRED_TOGETHER) };
    if (!(await leaveUnmapped(deps, { companyId, summary, range }))) return;
    await leaveSearch(deps, { companyId, summary, range });
    await deleteBatches(await clickhouse(), range);
    await noteDeleted(redis, companyId, range.to);
  }
}

/** Removed shipments leave the search by part. Those that came back before the removal have a row that is marked, and stay in it. */
async function leaveSearch(
  { redis, clickhouse }: DeletionDeps,
  { companyId, summary, range }: Omit<Retiring, "before">,
): Promise<void> {
  const wasRemoved = counts({ ...summary, floor: 0 });
  const places = (await readPlaces(await clickhouse(), range)).filter(wasRemoved);
  for (const [channelId, own] of Map.groupBy(places, ({ channel }) => channel)) {
    const ids = new Set(own.map(({ id }) => id));
    await erasing(redis, Date.now(), () => forgetLines(redis, companyId, channelId, ids));
  }
}

/**
 * Takes removed shipments off the lists of unmapped codes. Those that came back before the removal have a row that is marked, and
 * stay on them.
 * @returns false if it was interrupted
 */
async function leaveUnmapped(
  deps: DeletionDeps,
  { companyId, summary, range }: Omit<Retiring, "before">,
): Promise<boolean> {
  const { redis, clickhouse, pace } = deps;
  if (!(await hasUnmapped(redis, companyId))) return !deps.isStopping() && !deps.isTimeUp();
  const wasRemoved = counts({ ...summary, floor: 0 });
  const places = (await readPlaces(await clickhouse(), range)).filter(wasRemoved);
  for (const part of chunks(places, READ_AT_ONCE)) {
    if (deps.isStopping() || deps.isTimeUp()) return false;
    const startedMs = performance.now();
    for (const { whole, facts } of await openPlaces(deps, part)) {
      if (facts.shipment.state.unmapped === 0) continue;
      const unmapped = facts.facts().filter(({ mapping }) => mapping === null);
      const codes = new Set(unmapped.map(({ event }) => event.status.code));
      await forgetUnmapped(redis, whole.id, facts.meta.courier, [...codes]);
    }
    await pace(performance.now() - startedMs);
  }
  return true;
}
