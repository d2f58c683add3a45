/** For those who are going to write about a shipment that may be in the archive. */
import type { Redis } from "#core/redis/client/client.ts";
import { type Archive, hasArchived } from "./archive.ts";
import { restoreShipments } from "./restore-shipments.ts";

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
  await restoreShipments(redis, archived);
  return new Set(archived.map(({ whole }) => whole.id));
}
