/** For those who are going to write about a shipment that may be in the archive. */
import type { Redis } from "#core/redis/client/client.ts";
import { type Archive, hasArchived } from "./archive.ts";
import { type ArchivedShipment, restoreShipments } from "./restore-shipments.ts";
import { readDeletable } from "./retirement.ts";
import { missingOf } from "./shipments.ts";

/**
 * Brings shipments back that are in the archive.
 * @returns those that are in Redis now, or were a moment ago
 * @throws {Problem} 503 ARCHIVE_UNAVAILABLE
 */
export async function bringBack(
  redis: Redis,
  archive: Archive,
  ids: readonly number[],
  channelIds: readonly number[],
): Promise<ReadonlySet<number>> {
  if (ids.length === 0 || !(await hasArchived(redis))) return new Set();
  const archived = await archive.read(ids, channelIds);
  const back = new Set(await restoreShipments(redis, archived));
  const others = archived.filter(({ whole }) => !back.has(whole.id));
  for (const id of await notRemoved(redis, others)) back.add(id);
  return back;
}

/** Without those that are in Redis no more and have nothing but rows of removed batches. */
async function notRemoved(redis: Redis, rows: readonly ArchivedShipment[]): Promise<number[]> {
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
