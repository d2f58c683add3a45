/** For those who are going to write about a shipment that may be in the archive. */
import type { Redis } from "#core/platform/redis/client.ts";
import { missingOf } from "#core/shipments/store/shipments.ts";
import {
  type Archive,
  type ArchivedRow,
  ArchiveUnreadable,
  hasArchived,
  noteUnreadable,
} from "./archive.ts";
import { restoreShipments } from "./restore-shipments.ts";
import { readDeletable } from "./retirement.ts";

interface Back {
  /** Those that are in Redis now, or were a moment ago. */
  readonly back: ReadonlySet<number>;
  /** Those whose rows are damaged. */
  readonly unreadable: ReadonlySet<number>;
}

/**
 * Brings shipments back that are in the archive. Those whose rows are damaged stay there, and keep no others.
 * @throws {Problem} 503 ARCHIVE_UNAVAILABLE
 */
export async function bringBack(
  redis: Redis,
  archive: Archive,
  ids: readonly number[],
  channelIds: readonly number[],
): Promise<Back> {
  if (ids.length === 0 || !(await hasArchived(redis))) {
    return { back: new Set(), unreadable: new Set() };
  }
  const damaged: ArchivedRow[] = [];
  const archived = await archive.read(ids, channelIds, (row) => damaged.push(row));
  const unreadable = await noteUnreadable(redis, damaged);
  const back = new Set(await restoreShipments(redis, archived));
  const others = [...archived, ...damaged].filter(
    ({ whole: { id } }) => !back.has(id) && !unreadable.has(id),
  );
  for (const id of await notRemoved(redis, others)) back.add(id);
  return { back, unreadable };
}

/**
 * The same for a single one.
 * @returns whether it is in Redis now, or was a moment ago
 * @throws {Problem} 503 ARCHIVE_UNAVAILABLE, {ArchiveUnreadable} if its row is damaged
 */
export async function bringOneBack(
  redis: Redis,
  archive: Archive,
  id: number,
  channelIds: readonly number[],
): Promise<boolean> {
  const { back, unreadable } = await bringBack(redis, archive, [id], channelIds);
  if (unreadable.has(id)) throw new ArchiveUnreadable();
  return back.has(id);
}

/** Without those that are in Redis no more and have nothing but rows of removed batches. */
async function notRemoved(redis: Redis, rows: readonly ArchivedRow[]): Promise<number[]> {
  const left: number[] = [];
  for (const [companyId, own] of Map.groupBy(rows, (row) => row.companyId)) {
    const { floor } = await readDeletable(redis, companyId);
    const below = own.filter(({ batch }) => batch < floor).map(({ whole }) => whole.id);
    const missing = new Set(await missingOf(redis, below));
    left.push(
      ...own
        .filter(({ batch, whole }) => batch >= floor || !missing.has(whole.id))
        .map(({ whole }) => whole.id),
    );
  }
  return left;
}
