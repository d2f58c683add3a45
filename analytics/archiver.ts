/**
 * Moves shipments that are over to ClickHouse. One process at a time does it; a crash at any step is repaired by going on from the
 * start, since nothing counts in the archive before the step that removes it from Redis.
 *
 * | step                                | after a crash                                                            |
 * |-------------------------------------|--------------------------------------------------------------------------|
 * | numbers are dealt for batches       | they are skipped, and never count                                        |
 * | rows are inserted and confirmed     | the shipments are in Redis; their rows stand in batches that never count |
 * | references tell of the archive      | the same; events find the shipments as before                            |
 * | shipments are removed, batch settled | done: one step                                                           |
 */
import type { ClickHouseClient } from "@clickhouse/client";
import { chunks } from "#core/chunks.ts";
import { orderHash } from "#core/domain/courier-events/match-reference.ts";
import { shipDay } from "#core/domain/shipments/shipment.ts";
import { romeDate } from "#core/domain/time/rome-time.ts";
import type { Redis } from "#core/redis/client/client.ts";
import { companyKeys, companyPartition, trackingReference } from "#core/redis/client/keys.ts";
import type { Lock } from "#core/redis/client/lock.ts";
import type { Configuration } from "#core/redis/config/configuration.ts";
import type { Live } from "#core/redis/config/live.ts";
import { type CompactReference, compactReferences } from "#core/redis/intake/compact-references.ts";
import { candidateOf, referencesOf } from "#core/redis/intake/references.ts";
import { nextBatches } from "#core/redis/shipments/archive-summary.ts";
import {
  type Leaving,
  numberRows,
  REMOVED_PER_CALL,
  readLeaving,
  removeShipments,
} from "#core/redis/shipments/remove-shipments.ts";
import { type HotShipment, readHotShipments } from "#core/redis/shipments/shipments.ts";
import type { Vault } from "#core/secrets.ts";
import { archiveRow } from "./archive-rows.ts";
import { deleteRows, insertArchived } from "./archive-table.ts";

const DAY_MS = 86_400_000;
/** A shipment that has not reached a final status is archived after this many days without events. */
export const SILENT_DAYS = 180;
/** Shipments written with one insert: at most 100 batches. */
export const SHIPMENTS_PER_INSERT = 10_000;
/** Candidates that one command lists. */
const LISTED_TOGETHER = 1_000;

export interface MoveDeps {
  readonly redis: Redis;
  readonly live: Pick<Live, "now" | "refresh">;
  readonly vault: Pick<Vault, "keyFor">;
  /** @throws while ClickHouse is unavailable */
  readonly clickhouse: () => Promise<ClickHouseClient>;
}

export interface ArchiverDeps extends MoveDeps {
  /** Days without news after which a shipment that has ended is over. */
  readonly afterDays: number;
  /** Waits so that the work takes its share of a core and no more. */
  readonly pace: (workMs: number) => Promise<void>;
  readonly isStopping: () => boolean;
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
  let moved = 0;
  for (const channel of configuration.channels.values()) {
    if (deps.isStopping()) break;
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
  let moved = 0;
  for await (const leaving of leavingOf(deps, walk)) {
    if (moved === 0) await numberRows(deps.redis, walk.companyId, walk.channelId);
    const startedMs = performance.now();
    const removed = await moveToArchive(deps, walk.companyId, leaving, assertHeld);
    walk.position = Math.max(0, walk.position - removed);
    moved += removed;
    await deps.pace(performance.now() - startedMs);
    if (deps.isStopping()) break;
  }
  return moved;
}

/** Writes them with one insert, and removes them batch by batch. @returns how many were removed */
export async function moveToArchive(
  { redis, vault, clickhouse, live }: MoveDeps,
  companyId: number,
  leaving: readonly Leaving[],
  assertHeld: Lock["assertHeld"],
): Promise<number> {
  if (leaving.length === 0) return 0;
  const configuration = await live.refresh();
  const batches = chunks(leaving, REMOVED_PER_CALL);
  await assertHeld();
  const first = await nextBatches(redis, companyId, batches.length);
  const day = romeDate(live.now());
  const rows = batches.flatMap((batch, at) =>
    batch.map((one) => archiveRow(vault, one, first + at, day)),
  );
  await insertArchived(await clickhouse(), rows);
  let moved = 0;
  for (const [at, batch] of batches.entries()) {
    await assertHeld();
    await compactReferences(
      redis,
      batch.flatMap((one) => compactOf(one, configuration)),
    );
    const removed = await removeShipments(redis, companyId, first + at, batch);
    moved += removed?.filter((isRemoved) => isRemoved).length ?? 0;
  }
  return moved;
}

/** The references that events may find a shipment by. */
function compactOf({ whole, facts }: Leaving, { channels }: Configuration): CompactReference[] {
  const { meta, shipment } = facts;
  const { courier, channelId, trackingNumber, parcelNumbers = [], orderReference } = meta;
  const { aliases, mapped } = shipment.state;
  const accounts = channels.get(channelId)?.couriers.get(courier)?.senderAccounts ?? [];
  const common = {
    endedAtMs: mapped?.by.terminal ? mapped.by.occurredAtMs : null,
    orderHash: orderReference === null ? null : orderHash(orderReference),
  };
  const candidate = candidateOf(whole.id, meta);
  const numbers = [...new Set([trackingNumber, ...parcelNumbers, ...aliases])];
  const byNumber = numbers.map((number): CompactReference => {
    const archived = { ...common, ownsNumber: whole.numbers.includes(number) };
    const reference = trackingReference(courier, number);
    return { reference, isNumber: true, candidate: { ...candidate, archived } };
  });
  const byExternal = referencesOf(courier, [], accounts, orderReference).map((reference) => {
    const archived = { ...common, ownsNumber: false };
    return { reference, isNumber: false, candidate: { ...candidate, archived } };
  });
  return [...byNumber, ...byExternal];
}

/** Those of a channel that are over, as many as one insert takes. */
async function* leavingOf(deps: ArchiverDeps, walk: Walk): AsyncGenerator<Leaving[]> {
  let found: Leaving[] = [];
  for await (const ids of candidatesOf(deps, walk)) {
    const startedMs = performance.now();
    for (const part of chunks(ids, REMOVED_PER_CALL)) {
      const leaving = await readLeaving(deps.redis, part);
      found.push(...leaving.filter((one) => isQuiet(one, deps.live.now(), deps.afterDays)));
    }
    await deps.pace(performance.now() - startedMs);
    if (deps.isStopping()) return;
    if (found.length < SHIPMENTS_PER_INSERT) continue;
    yield found;
    found = [];
  }
  if (found.length > 0) yield found;
}

/** Shipments that are over by their states, those first that changed longest ago. */
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
    const hot = await readHotShipments(redis, ids);
    yield ids.filter((id) => {
      const shipment = hot.get(id);
      return shipment !== undefined && isOver(shipment, nowMs, afterDays);
    });
    // Those that were never updated stand in the order of their creation: the next ones are younger.
    const youngest = hot.get(ids.at(-1) ?? 0);
    if (youngest?.updated === 0 && quietMs(youngest, nowMs) < SILENT_DAYS * DAY_MS) {
      walk.position = Math.max(walk.position, await redis.zCount(index, 0, 0));
    }
  }
}

/** Delivered or returned and without news for a while, or without news for very long; and nothing waits to be mapped. */
export function isOver(shipment: HotShipment, nowMs: number, afterDays: number): boolean {
  const { pair, unmapped } = shipment.state;
  if (unmapped > 0 || pair.status === "WAITING_TO_COMPUTE") return false;
  const hasEnded = pair.status === "DELIVERED" || pair.status === "RETURNED";
  const days = hasEnded ? Math.min(afterDays, SILENT_DAYS) : SILENT_DAYS;
  return quietMs(shipment, nowMs) >= days * DAY_MS;
}

/**
 * Whether the shipment has had no event (one too late to change its status counts too), no notification and no stock release
 * lately: any of them may still be in progress.
 */
function isQuiet({ facts, whole }: Leaving, nowMs: number, afterDays: number): boolean {
  const since = nowMs - Math.min(afterDays, SILENT_DAYS) * DAY_MS;
  const notified = whole.topics.filter((_, at) => at % 2 === 1).map(Number);
  const released = whole.releases
    .filter((_, at) => at % 2 === 1)
    .map((text): number => JSON.parse(text).askedAtMs);
  const received = facts.facts().map(({ receivedAtMs }) => receivedAtMs);
  return [...notified, ...released, ...received].every((atMs) => atMs <= since);
}

/** Since its last news: a change of its status, the latest fact, or its ship date where there is neither. */
function quietMs({ updated, state, meta }: HotShipment, nowMs: number): number {
  const received = state.last?.by.receivedAtMs ?? shipDay(meta.shipDate) * DAY_MS;
  return nowMs - Math.max(updated * 1_000, received);
}

/** Rows of the archive that count no more are deleted by so many at once. */
const DELETED_TOGETHER = 10_000;
/** Longer than any answer, and any insert, that was under way when a row or batch ceased to count. */
export const ABSENT_KEPT_MS = 3_600_000;

/** Deletes rows that have been obsolete for a while, and then the marks that say so. */
export async function deleteAbsent(
  { redis, clickhouse }: Pick<MoveDeps, "redis" | "clickhouse">,
  companyId: number,
  keptMs = ABSENT_KEPT_MS,
): Promise<void> {
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
