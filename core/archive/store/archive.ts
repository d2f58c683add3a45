/**
 * The archive, as those who read shipments see it: ClickHouse, behind an interface that names no engine. Only what Redis does
 * not have is looked for there.
 */

import type { Configuration } from "#core/configuration/store/configuration.ts";
import type { Fact } from "#core/events/rules/fact.ts";
import { hasCompact } from "#core/events/store/compact-references.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { companyPartition, shipmentPartition } from "#core/platform/redis/keys.ts";
import {
  readHistories,
  readShipments,
  type StoredShipment,
} from "#core/shipments/store/shipments.ts";
import { counts, readArchiveSummary } from "./archive-summary.ts";
import { noteDamaged } from "./damaged-rows.ts";
import type { ArchivedShipment } from "./restore-shipments.ts";

export interface Archive {
  /**
   * Every row of these shipments in some channels, whether it counts or not.
   * @param onDamaged called for each row that cannot be opened; it is left out
   * @throws {Problem} 503 ARCHIVE_UNAVAILABLE
   */
  readonly read: (
    ids: readonly number[],
    channelIds: readonly number[],
    onDamaged?: (row: ArchivedRow) => void,
  ) => Promise<ArchivedShipment[]>;
  /**
   * Rows whose latest event is dated more than a day after their status changed last: an event from the future may hold them.
   * @throws {Problem} 503 ARCHIVE_UNAVAILABLE
   */
  readonly ahead: (after: ArchivePlace) => Promise<AheadPage>;
}

/** In the order of the archive's rows. */
export interface ArchivePlace {
  readonly channelId: number;
  readonly id: number;
}

export interface AheadPage {
  readonly ids: readonly number[];
  /** Where to go on; null = that was all. */
  readonly next: ArchivePlace | null;
}

/** What a row tells without being opened. */
export interface ArchivedRow {
  readonly companyId: number;
  readonly batch: number;
  readonly whole: { readonly id: number };
}

/** Of a single shipment: its row was not written by us, or under another key, or is damaged. */
export class ArchiveUnreadable extends Problem<"ARCHIVE_UNAVAILABLE"> {
  constructor() {
    super(503, "ARCHIVE_UNAVAILABLE", "This shipment is over, and its archived row is damaged.", {
      headers: { "retry-after": "300" },
    });
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
  readonly thaw: (archived: ArchivedShipment) => T;
  /** A damaged row keeps no others: its shipment is left out. Otherwise the question fails. */
  readonly withoutDamaged?: boolean;
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
async function countingRows<Row extends ArchivedRow>(
  redis: Redis,
  rows: readonly Row[],
): Promise<Map<number, Row>> {
  const found = new Map<number, Row>();
  for (const [companyId, own] of Map.groupBy(rows, (row) => row.companyId)) {
    const summary = await readArchiveSummary(redis, companyId);
    const isCounting = summary && counts(summary);
    for (const row of own) {
      if (isCounting?.({ id: row.whole.id, batch: row.batch })) found.set(row.whole.id, row);
    }
  }
  return found;
}

/** Notes damaged rows that count for operators. @returns their shipments */
export async function noteUnreadable(
  redis: Redis,
  damaged: readonly ArchivedRow[],
): Promise<ReadonlySet<number>> {
  const counting = await countingRows(redis, damaged);
  const rows = [...counting].map(([shipmentId, { companyId, batch }]) => {
    return { companyId, shipmentId, batch };
  });
  await noteDamaged(redis, rows);
  return new Set(counting.keys());
}

/**
 * Reads shipments wherever they are: from Redis, then those that it does not have from the archive, then those that came back
 * in between from Redis again. The archive is asked only if anything was ever archived.
 * @throws {Problem} 503 ARCHIVE_UNAVAILABLE
 */
export async function readAnywhere<T>(
  redis: Redis,
  archive: Archive,
  ids: readonly number[],
  { channelIds, readHot, thaw, withoutDamaged = false }: Ways<T>,
): Promise<Map<number, T>> {
  const found = new Map<number, T>();
  let left = ids;
  for (let round = 0; round < ROUNDS && left.length > 0; round += 1) {
    for (const [id, one] of await readHot(left)) found.set(id, one);
    left = left.filter((id) => !found.has(id));
    if (left.length === 0 || !(await hasArchived(redis))) break;
    const damaged: ArchivedRow[] = [];
    const rows = await archive.read(left, channelIds, (row) => damaged.push(row));
    const unreadable = await noteUnreadable(redis, damaged);
    if (unreadable.size > 0 && !withoutDamaged) throw new ArchiveUnreadable();
    for (const [id, row] of await countingRows(redis, rows)) found.set(id, thaw(row));
    const present = new Set([...rows, ...damaged].map(({ whole }) => whole.id));
    left = left.filter((id) => !found.has(id) && present.has(id) && !unreadable.has(id));
  }
  return found;
}

/**
 * Shipments of some channels as they are now, in the order of their ids, wherever they are. One of another channel is looked for
 * like a missing one, and one whose row is damaged is left out.
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
    thaw: ({ facts }) => facts.shipment,
    withoutDamaged: true,
  });
  return ids.flatMap((id) => found.get(id) ?? []);
}

/**
 * Histories of shipments wherever they are; missing shipments have none, nor have those whose rows are damaged.
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
    thaw: ({ facts }) => facts.facts(),
    withoutDamaged: true,
  });
  return [...found.values()];
}
