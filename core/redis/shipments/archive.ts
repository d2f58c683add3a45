/**
 * The archive, as those who read shipments see it: ClickHouse, behind an interface that names no engine. Only what Redis does
 * not have is looked for there.
 */
import type { Fact } from "#core/domain/courier-events/fact.ts";
import type { Redis } from "#core/redis/client/client.ts";
import { companyPartition, shipmentPartition } from "#core/redis/client/keys.ts";
import type { Configuration } from "#core/redis/config/configuration.ts";
import { hasCompact } from "#core/redis/intake/compact-references.ts";
import { counts, readArchiveSummary } from "./archive-summary.ts";
import { factsOfWhole } from "./archived-shipment.ts";
import type { ArchivedShipment } from "./restore-shipments.ts";
import { readHistories, readShipments, type StoredShipment } from "./shipments.ts";

export interface Archive {
  /**
   * Every row of these shipments in some channels, whether it counts or not. One that cannot be opened is left out while others can
   * be, so that it keeps neither a page nor the events of other shipments.
   * @throws {Problem} 503 ARCHIVE_UNAVAILABLE
   * @throws {ArchiveUnreadable} if no row can be opened
   */
  readonly read: (
    ids: readonly number[],
    channelIds: readonly number[],
  ) => Promise<ArchivedShipment[]>;
}

/** Rows that were not written by us, or under another key. */
export class ArchiveUnreadable extends Error {
  constructor() {
    super("the archived shipment cannot be read");
  }
}

/** Whether anything was ever archived: until then nobody asks the archive. */
export function hasArchived(redis: Redis): Promise<boolean> {
  return hasCompact(redis);
}

/** How shipments are read on either side. */
interface Ways<T> {
  /** Only shipments of these are found in the archive. */
  readonly channelIds: readonly number[];
  /** By id, those that Redis has. */
  readonly readHot: (ids: readonly number[]) => Promise<ReadonlyMap<number, T>>;
  /** Makes the same of an archived one. */
  readonly thaw: (archived: ArchivedShipment) => T | null;
}

/** All channels that shipments with these ids can be of. */
export function channelsOfShipments(
  { channels }: Pick<Configuration, "channels">,
  ids: readonly number[],
): number[] {
  const partitions = new Set(ids.map(shipmentPartition));
  return [...channels.values()]
    .filter(({ companyId }) => partitions.has(companyPartition(companyId)))
    .map(({ id }) => id);
}

/** Readings of shipments that move meanwhile: none moves twice within seconds. */
const ROUNDS = 5;

/**
 * The rows that count, by shipment. They are judged by what counts after they were read: where a row does, its shipment was in
 * the archive at that moment.
 */
async function countingRows(
  redis: Redis,
  rows: readonly ArchivedShipment[],
): Promise<Map<number, ArchivedShipment>> {
  const found = new Map<number, ArchivedShipment>();
  for (const [companyId, own] of Map.groupBy(rows, (row) => row.companyId)) {
    const summary = await readArchiveSummary(redis, companyId);
    const isCounting = summary && counts(summary);
    for (const row of own) {
      if (isCounting?.({ id: row.whole.id, batch: row.batch })) found.set(row.whole.id, row);
    }
  }
  return found;
}

/**
 * Reads shipments wherever they are: from Redis, then those that it does not have from the archive, then those that came back
 * in between from Redis again. The archive is asked only if anything was ever archived.
 */
export async function readAnywhere<T>(
  redis: Redis,
  archive: Archive,
  ids: readonly number[],
  { channelIds, readHot, thaw }: Ways<T>,
): Promise<Map<number, T>> {
  const found = new Map<number, T>();
  let left = ids;
  for (let round = 0; round < ROUNDS && left.length > 0; round += 1) {
    for (const [id, one] of await readHot(left)) found.set(id, one);
    left = left.filter((id) => !found.has(id));
    if (left.length === 0 || !(await hasArchived(redis))) break;
    const rows = await archive.read(left, channelIds);
    if (rows.length === 0) break;
    const archived = await countingRows(redis, rows);
    for (const [id, row] of archived) {
      const one = thaw(row);
      if (one) found.set(id, one);
    }
    const present = new Set(rows.map(({ whole }) => whole.id));
    left = left.filter((id) => !found.has(id) && present.has(id));
  }
  return found;
}

/**
 * Shipments of some channels as they are now, in the order of their ids, wherever they are. One of another channel is looked for
 * like a missing one.
 * @throws {Problem} 503 ARCHIVE_UNAVAILABLE
 */
export async function readShipmentsAnywhere(
  redis: Redis,
  archive: Archive,
  ids: readonly number[],
  channelIds: readonly number[],
): Promise<StoredShipment[]> {
  const found = await readAnywhere<StoredShipment>(redis, archive, ids, {
    channelIds,
    readHot: async (some) => {
      const hot = await readShipments(redis, some);
      const own = hot.filter(({ record }) => channelIds.includes(record.channelId));
      return new Map(own.map((one) => [one.record.id, one]));
    },
    thaw: ({ whole }) => factsOfWhole(whole)?.shipment ?? null,
  });
  return ids.flatMap((id) => found.get(id) ?? []);
}

/**
 * Histories of shipments wherever they are; missing shipments have none.
 * @throws {Problem} 503 ARCHIVE_UNAVAILABLE
 */
export async function readHistoriesAnywhere(
  redis: Redis,
  archive: Archive,
  ids: readonly number[],
  channelIds: readonly number[],
): Promise<Fact[][]> {
  const found = await readAnywhere<Fact[]>(redis, archive, ids, {
    channelIds,
    readHot: (some) => readHistories(redis, some),
    thaw: ({ whole }) => factsOfWhole(whole)?.facts() ?? null,
  });
  return [...found.values()];
}
