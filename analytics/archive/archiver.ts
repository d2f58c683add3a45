/**
 * Moves shipments that are over to ClickHouse. One process at a time does it; a crash at any step is repaired by going on from the
 * start, since nothing counts in the archive before the step that removes it from Redis.
 *
 * | step                                | after a crash                                                            |
 * |-------------------------------------|--------------------------------------------------------------------------|
 * | numbers are allocated for batches   | they are skipped, and never count                                        |
 * | rows are inserted and confirmed     | the shipments are in Redis; their rows stand in batches that never count, however late they are inserted |
 * | references tell of the archive      | the same; events find the shipments as before                            |
 * | shipments are removed, batch settled | done: one step                                                           |
 */

import type { ClickHouseClient } from "@clickhouse/client";
import type { Row } from "#analytics/write/rows.ts";
import { noteMoved } from "#core/archive/store/archive-status.ts";
import {
  forgetSkipped,
  nextBatches,
  readSkipped,
  returnBatches,
} from "#core/archive/store/archive-summary.ts";
import { receivedTimes } from "#core/archive/store/archived-history.ts";
import type { Hot, LeavingFacts } from "#core/archive/store/archived-shipment.ts";
import { isHeld, readHeldChannels } from "#core/archive/store/held-channels.ts";
import {
  type Leaving,
  numberRows,
  REMOVED_PER_CALL,
  type Removal,
  readLeaving,
  removeShipments,
} from "#core/archive/store/remove-shipments.ts";
import {
  noteSwept,
  readDeletable,
  readRetirement,
  readSweptAt,
} from "#core/archive/store/retirement.ts";
import type { Configuration } from "#core/configuration/store/configuration.ts";
import type { Live } from "#core/configuration/store/live.ts";
import { happenedAtMs } from "#core/events/rules/fact.ts";
import { orderHash } from "#core/events/rules/match-reference.ts";
import { matchingNumber } from "#core/events/rules/reference.ts";
import { type CompactReference, compactReferences } from "#core/events/store/compact-references.ts";
import { candidateOf, referencesOf } from "#core/events/store/references.ts";
import { chunks } from "#core/platform/process/chunks.ts";
import type { Log } from "#core/platform/process/log.ts";
import { turns } from "#core/platform/process/next-turn.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import {
  companyKeys,
  companyPartition,
  trackingReference,
  withAsGiven,
} from "#core/platform/redis/keys.ts";
import type { Lock } from "#core/platform/redis/lock.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type { Vault } from "#core/platform/secrets/secrets.ts";
import { romeDate } from "#core/platform/time/rome-time.ts";
import { orderReferencesOf } from "#core/shipments/rules/shipment.ts";
import { readShipments } from "#core/shipments/store/shipments.ts";
import { archiveRow } from "./archive-rows.ts";
import { deleteRows, insertSound, readPresent } from "./archive-table.ts";

const DAY_MS = 86_400_000;
/** A shipment that has not reached a final status is archived after this many days without events since its creation. */
export const SILENT_DAYS = limit(
  180,
  "time without news after which a shipment that has not ended is archived",
  "archived, unless archiving is off",
);
/** Batches written with one insert: 10,000 shipments. */
const BATCHES_PER_INSERT = limit(
  100,
  "batches of shipments archived with one insert",
  "the next insert",
);
/** Batches whose references are made compact together: about 100 references for each partition of theirs. */
const BATCHES_PER_COMPACTION = 8;
/** Candidates whose listing is remembered at least, so that they are not read again where others have moved them. */
const IDS_REMEMBERED = 10_000;
/** Candidates that one command lists. */
const LISTED_TOGETHER = 1_000;

/** One shipment must not keep the others. */
const STAYS = "a shipment cannot be archived and stays in Redis";

/** Only the kind of the fault: its words may repeat what is personal. */
function noteStaying(log: MoveDeps["log"], shipment: number, fault: unknown): void {
  log.error({ shipment, fault: (fault as Error).name }, STAYS);
}

export interface MoveDeps {
  readonly redis: Redis;
  readonly log: Pick<Log, "error">;
  readonly live: Pick<Live, "now" | "refresh">;
  readonly vault: Pick<Vault, "keyFor">;
  /** @throws while ClickHouse is unavailable */
  readonly clickhouse: () => Promise<ClickHouseClient>;
}

export interface ArchiverDeps extends MoveDeps {
  /** Days without news after which a shipment that has ended is over. */
  readonly afterDays: number;
  /** Awaited before the first shipment of a channel leaves: until something is archived nobody looks for it. */
  readonly prepare: () => Promise<void>;
  /** Waits so that the work takes its share of a core and no more. */
  readonly pace: (workMs: number) => Promise<void>;
  readonly isStopping: () => boolean;
  /** Something else is to be done; what has been written moves first. */
  readonly isTimeUp: () => boolean;
}

/**
 * Moves everything that is over by now.
 * @returns how many shipments were moved
 */
export async function archiveAll(
  deps: ArchiverDeps,
  assertHeld: Lock["assertHeld"],
): Promise<number> {
  const configuration = await deps.live.refresh();
  const held = new Set((await readHeldChannels(deps.redis)).map(({ channelId }) => channelId));
  let moved = 0;
  for (const channel of configuration.channels.values()) {
    if (deps.isStopping() || deps.isTimeUp()) break;
    if (held.has(channel.id)) continue;
    const { id: channelId, companyId } = channel;
    moved += await archiveChannel(deps, { channelId, companyId, position: 0 }, assertHeld);
  }
  return moved;
}

interface Walk {
  readonly channelId: number;
  readonly companyId: number;
  /** Where in the index by statusUpdatedAt; what leaves it moves the rest forward. */
  position: number;
}

async function archiveChannel(
  deps: ArchiverDeps,
  walk: Walk,
  assertHeld: Lock["assertHeld"],
): Promise<number> {
  const { redis } = deps;
  let moved = 0;
  let written: WrittenBatch[] = [];
  async function settle(): Promise<void> {
    const removed = await settleBatches(deps, walk.companyId, written, assertHeld);
    await noteMoved(redis, removed);
    walk.position = Math.max(0, walk.position - removed);
    moved += removed;
    written = [];
  }
  for await (const leaving of leavingOf(deps, walk)) {
    if (moved + written.length === 0) {
      // A shipment that comes back while its batch is being removed gets its references again first.
      if ((await readRetirement(redis, walk.companyId)).to !== null) return 0;
      await deps.prepare();
      if (deps.isStopping()) return 0;
      await numberRows(redis, walk.companyId, walk.channelId);
    }
    const startedMs = performance.now();
    await assertHeld();
    written.push(await writeBatch(deps, walk.companyId, leaving));
    await deps.pace(performance.now() - startedMs);
    if (deps.isStopping()) break;
    if (written.length < BATCHES_PER_INSERT) continue;
    // An operator may have begun to keep the channel in Redis meanwhile.
    if (await isHeld(redis, walk.channelId)) break;
    await settle();
    if (deps.isStopping() || deps.isTimeUp()) return moved;
  }
  if (!deps.isStopping() && !(await isHeld(redis, walk.channelId))) await settle();
  else await giveBack(redis, walk.companyId, written);
  return moved;
}

/** Nothing was inserted of these batches. */
async function giveBack(
  redis: Redis,
  companyId: number,
  written: readonly WrittenBatch[],
): Promise<void> {
  const [first, last] = [written[0]?.number, written.at(-1)?.number];
  if (first === undefined || last === undefined || last - first >= written.length) return;
  await returnBatches(redis, companyId, first, last);
}

/** Writes them with one insert, and removes them batch by batch. @returns how many were removed */
export async function moveToArchive(
  deps: MoveDeps,
  companyId: number,
  leaving: readonly Leaving[],
  assertHeld: Lock["assertHeld"],
): Promise<number> {
  const written: WrittenBatch[] = [];
  await assertHeld();
  for (const batch of chunks(leaving, REMOVED_PER_CALL)) {
    written.push(await writeBatch(deps, companyId, batch));
  }
  return settleBatches({ ...deps, pace: async () => {} }, companyId, written, assertHeld);
}

/** A batch with its rows, not inserted yet, and what its removal needs. */
interface WrittenBatch {
  readonly number: number;
  readonly rows: readonly Row[];
  readonly leaving: readonly Removal[];
}

async function writeBatch(
  { redis, vault, live, log }: MoveDeps,
  companyId: number,
  leaving: readonly Leaving[],
): Promise<WrittenBatch> {
  const number = await nextBatches(redis, companyId, 1);
  const day = romeDate(live.now());
  const configuration = await live.refresh();
  const rows: Row[] = [];
  const kept: Removal[] = [];
  const turn = turns();
  for (const one of leaving) {
    const { facts, sideDigest } = one;
    const { id, numbers } = one.whole;
    const accounts = accountsOf(facts, configuration);
    try {
      rows.push(archiveRow(vault, { ...one, whole: { ...one.whole, accounts } }, number, day));
      kept.push({ whole: { id, numbers, accounts }, facts, sideDigest });
    } catch (error) {
      noteStaying(log, id, error);
    }
    if (turn.due()) await turn.take();
  }
  return { number, rows, leaving: kept };
}

/** Inserts the rows of all, then removes batch by batch. @returns how many shipments were removed */
async function settleBatches(
  { redis, log, clickhouse, pace }: MoveDeps & Pick<ArchiverDeps, "pace">,
  companyId: number,
  written: readonly WrittenBatch[],
  assertHeld: Lock["assertHeld"],
): Promise<number> {
  if (written.length === 0) return 0;
  const insertedMs = performance.now();
  const client = await clickhouse();
  const rows = written.flatMap((batch) => batch.rows);
  const refused = await insertSound(client, rows, assertHeld);
  await pace(performance.now() - insertedMs);
  let moved = 0;
  for (const group of chunks(written, BATCHES_PER_COMPACTION)) {
    const startedMs = performance.now();
    await assertHeld();
    const references = group.flatMap(({ leaving }) => leaving.flatMap(compactOf));
    await compactReferences(redis, references);
    for (const { number, leaving: all, rows } of group) {
      await assertHeld();
      const leaving = all.filter((_, at) => !refused.has(rows[at] as Row));
      for (const [at, { whole }] of all.entries()) {
        const reason = refused.get(rows[at] as Row);
        if (reason) log.error({ shipment: whole.id, reason }, STAYS);
      }
      if (leaving.length === 0) continue;
      const removed = await removeShipments(redis, companyId, number, leaving);
      moved += removed?.filter((isRemoved) => isRemoved).length ?? 0;
    }
    await pace(performance.now() - startedMs);
  }
  return moved;
}

/** Sender accounts whose events name the shipment by its order. */
export function accountsOf(
  { meta }: Pick<LeavingFacts, "meta">,
  { channels }: Pick<Configuration, "channels">,
): readonly string[] {
  const { channelId, courier } = meta;
  if (orderReferencesOf(meta).length === 0) return [];
  return channels.get(channelId)?.couriers.get(courier)?.senderAccounts ?? [];
}

/** The references that events may find a shipment by. */
export function compactOf({ whole, facts }: Pick<Removal, "whole" | "facts">): CompactReference[] {
  const { meta, shipment } = facts;
  const { courier, trackingNumber, parcelNumbers = [] } = meta;
  const candidate = candidateOf(whole.id, meta);
  const { orderReference } = candidate;
  const { aliases, mapped } = shipment.state;
  const common = {
    endedAtMs: mapped?.by.terminal ? happenedAtMs(mapped.by) : null,
    orderHash: orderReference === null ? null : orderHash(orderReference),
  };
  const owned = new Set(whole.numbers.map(matchingNumber));
  const byNumber = [trackingNumber, ...parcelNumbers, ...aliases].flatMap((number) => {
    const archived = { ...common, ownsNumber: owned.has(matchingNumber(number)) };
    return withAsGiven([trackingReference(courier, number)]).map((reference): CompactReference => {
      return { reference, isNumber: true, candidate: { ...candidate, archived } };
    });
  });
  const accounts = referencesOf(courier, [], whole.accounts, orderReferencesOf(meta));
  const byExternal = withAsGiven(accounts).map((reference): CompactReference => {
    const archived = { ...common, ownsNumber: false };
    return { reference, isNumber: false, candidate: { ...candidate, archived } };
  });
  const all = [...byNumber, ...byExternal];
  return [...new Map(all.map((one) => [one.reference.key, one])).values()];
}

/**
 * Those of a channel that are over, a batch at a time. Shipments that come back or change while the index is read move the others,
 * which are then listed again: no batch has a shipment twice.
 */
async function* leavingOf(deps: ArchiverDeps, walk: Walk): AsyncGenerator<Leaving[]> {
  const { redis, live, log, afterDays } = deps;
  let found: Leaving[] = [];
  const listed = new Set<number>();
  for await (const ids of candidatesOf(deps, walk)) {
    if (listed.size > IDS_REMEMBERED) {
      listed.clear();
      for (const { whole } of found) listed.add(whole.id);
    }
    const fresh = ids.filter((id) => !listed.has(id));
    for (const id of fresh) listed.add(id);
    for (const part of chunks(fresh, REMOVED_PER_CALL)) {
      const startedMs = performance.now();
      const nowMs = live.now();
      const terms = {
        isWanted: (hot: Hot) => isOver(hot, nowMs, afterDays),
        onFault: (id: number, fault: unknown) => noteStaying(log, id, fault),
      };
      const leaving = await readLeaving(redis, part, terms);
      for (const one of leaving) {
        try {
          if (isQuiet(one, nowMs, afterDays)) found.push(one);
        } catch (error) {
          noteStaying(log, one.whole.id, error);
        }
      }
      await deps.pace(performance.now() - startedMs);
      if (deps.isStopping()) return;
      if (found.length < REMOVED_PER_CALL) continue;
      yield found.slice(0, REMOVED_PER_CALL);
      found = found.slice(REMOVED_PER_CALL);
    }
  }
  if (found.length > 0) yield found;
}

/** Shipments without a new status for as long as is needed, those first that changed longest ago. */
async function* candidatesOf(
  { redis, live, afterDays }: ArchiverDeps,
  walk: Walk,
): AsyncGenerator<number[]> {
  const index = companyKeys(companyPartition(walk.companyId)).index(walk.channelId, "upd");
  for (;;) {
    const nowMs = live.now();
    const last = Math.floor((nowMs - afterDays * DAY_MS) / 1_000);
    const listed = await redis.zRangeWithScores(
      index,
      walk.position,
      walk.position + LISTED_TOGETHER - 1,
    );
    const members = listed.filter(({ score }) => score <= last);
    if (members.length === 0) return;
    walk.position += members.length;
    const ids = members.map(({ value }) => Number(value));
    yield ids;
    // Those that were never updated stand in the order of their creation: the next ones are younger.
    if (members.at(-1)?.score !== 0) continue;
    const [youngest] = await readShipments(redis, ids.slice(-1));
    if (youngest && nowMs - youngest.record.createdAtMs < SILENT_DAYS * DAY_MS) {
      walk.position = Math.max(walk.position, await redis.zCount(index, 0, 0));
    }
  }
}

/** As far as its state tells: without news for as long as it has to be. One without any news counts from its creation (`isQuiet`). */
function isOver({ updated, state }: Hot, nowMs: number, afterDays: number): boolean {
  if (state.pair.status === "WAITING_TO_COMPUTE") return false;
  const news = Math.max(updated * 1_000, state.last?.by.receivedAtMs ?? 0);
  return nowMs - news >= quietDays(state, afterDays) * DAY_MS;
}

/** Delivered or returned, and all mapped: a while; else very long. */
function quietDays({ pair, unmapped }: Hot["state"], afterDays: number): number {
  const hasEnded = unmapped === 0 && (pair.status === "DELIVERED" || pair.status === "RETURNED");
  return hasEnded ? Math.min(afterDays, SILENT_DAYS) : SILENT_DAYS;
}

/**
 * Whether the shipment has existed for as long, and has had no event (one too late to change its status counts too), no notification
 * and no stock release lately: any of them may still be in progress. Its ship date tells nothing: merchants import old shipments.
 */
function isQuiet({ texts, whole, facts }: Leaving, nowMs: number, afterDays: number): boolean {
  const { record, state } = facts.shipment;
  if (nowMs - record.createdAtMs < quietDays(state, afterDays) * DAY_MS) return false;
  const since = nowMs - Math.min(afterDays, SILENT_DAYS) * DAY_MS;
  const notified = whole.topics.filter((_, at) => at % 2 === 1).map(Number);
  const released = whole.releases
    .filter((_, at) => at % 2 === 1)
    .map((text): number => JSON.parse(text).askedAtMs);
  return [...notified, ...released, ...receivedTimes(texts)].every((atMs) => atMs <= since);
}

export const DELETED_TOGETHER = limit(
  10_000,
  "archived rows deleted at once",
  "the next statement",
);
/** Longer than any answer, and any insert, that was under way when a row or batch ceased to count. */
export const ABSENT_KEPT_MS = limit(
  3_600_000,
  "time after which archived rows that do not count are deleted",
  "the next statement",
);

/**
 * Deletes rows that have been obsolete for a while, and then the marks that say so; not while shipments of the company are being
 * removed: by these rows those that came back meanwhile get their references again.
 */
export async function deleteAbsent(
  { redis, clickhouse }: Pick<MoveDeps, "redis" | "clickhouse">,
  companyId: number,
  keptMs = ABSENT_KEPT_MS,
): Promise<void> {
  if ((await readRetirement(redis, companyId)).to !== null) return;
  await sweepSkipped({ redis, clickhouse }, companyId, keptMs);
  const keys = companyKeys(companyPartition(companyId));
  const [rowsKey, batchesKey] = [keys.absentRows(companyId), keys.absentBatches(companyId)];
  const limit = { offset: 0, count: DELETED_TOGETHER };
  // Their scores are times of Redis' own clock; next to an hour it does not matter how far ours is from it.
  const until = String(Date.now() - keptMs);
  for (;;) {
    const options = { BY: "SCORE", LIMIT: limit } as const;
    const rows = await redis.zRange(rowsKey, "-inf", until, options);
    const batches = await redis.zRange(batchesKey, "-inf", until, options);
    if (rows.length + batches.length === 0) return;
    await deleteRows(await clickhouse(), companyId, rows, batches.map(Number));
    if (rows.length > 0) await redis.zRem(rowsKey, rows);
    if (batches.length > 0) await redis.zRem(batchesKey, batches);
  }
}

/** Skipped batches of a company that are remembered: those of about 50 crashes. The oldest go first. */
export const SKIPPED_KEPT = limit(
  5_000,
  "skipped batches of the archive that are remembered, of a company",
  "the oldest are forgotten: rows inserted under them after that would count",
);

/**
 * Rows of batches that were never settled count for nobody, whenever they are inserted: a process may have been paused, or a request
 * held on its way, for any time. They are deleted, since they hold what may have been erased by now; that they do not count
 * stays known.
 */
async function sweepSkipped(
  { redis, clickhouse }: Pick<MoveDeps, "redis" | "clickhouse">,
  companyId: number,
  everyMs: number,
): Promise<void> {
  const skipped = await readSkipped(redis, companyId);
  if (skipped.length === 0) return;
  if (Date.now() - (await readSweptAt(redis, companyId)) < everyMs) return;
  const client = await clickhouse();
  const present = await readPresent(client, companyId, skipped);
  if (present.length > 0) await deleteRows(client, companyId, [], present);
  const { floor } = await readDeletable(redis, companyId);
  const needed = skipped.filter((batch) => batch >= floor);
  const kept = new Set(needed.slice(-SKIPPED_KEPT));
  const others = skipped.filter((batch) => !kept.has(batch));
  await forgetSkipped(redis, companyId, others);
  await noteSwept(redis, companyId);
}
