/**
 * Brings everything that a channel has in the archive back to Redis, batch by batch. Whoever goes on after a crash finds what is
 * still there: a row counts no more from the step on that restores its shipment.
 */

import { counts, readArchiveSummary } from "#core/archive/store/archive-summary.ts";
import { noteDamaged, type RowPlace } from "#core/archive/store/damaged-rows.ts";
import {
  type HeldChannel,
  isHeld,
  markBatch,
  noteAllRestored,
  noteRestored,
} from "#core/archive/store/held-channels.ts";
import { type ArchivedShipment, restoreShipments } from "#core/archive/store/restore-shipments.ts";
import type { Log } from "#core/platform/process/log.ts";
import type { Lock } from "#core/platform/redis/lock.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { openRow } from "./archive-table.ts";
import type { MoveDeps } from "./archiver.ts";
import { type PlacedRow, readPlacesOfBatches, readRowsOf } from "./retention-table.ts";

export const BATCHES_BROUGHT_BACK = limit(
  10,
  "batches of the archive brought back together",
  "the next ones",
);

export interface BringBackDeps extends MoveDeps {
  readonly log: Pick<Log, "info" | "error">;
  readonly pace: (workMs: number) => Promise<void>;
  readonly isStopping: () => boolean;
  /** The next round goes on. */
  readonly isTimeUp: () => boolean;
}

/** @returns how many came back */
export async function bringChannelBack(
  deps: BringBackDeps,
  companyId: number,
  { channelId, isDone }: HeldChannel,
  assertHeld: Lock["assertHeld"],
): Promise<number> {
  if (isDone) return 0;
  const { redis, clickhouse, log } = deps;
  let restored = 0;
  let after = 0;
  while (!deps.isStopping() && !deps.isTimeUp() && (await isHeld(redis, channelId))) {
    const startedMs = performance.now();
    const summary = await readArchiveSummary(redis, companyId);
    // A company without one has never had anything in the archive.
    if (summary) {
      const from = Math.max(summary.floor, after + 1);
      const places = await readPlacesOfBatches(
        await clickhouse(),
        { channelIds: [channelId], from, to: summary.batch + 1 },
        summary.absentBatches,
        BATCHES_BROUGHT_BACK,
      );
      const isCounting = counts(summary);
      for (const [batch, own] of Map.groupBy(places, (place) => place.batch)) {
        await assertHeld();
        restored += await restoreBatch(deps, { companyId, channelId, batch }, own, isCounting);
        after = batch;
      }
      await deps.pace(performance.now() - startedMs);
      if (places.length > 0) continue;
    }
    await assertHeld();
    await noteAllRestored(redis, channelId);
    log.info({ channelId, shipments: restored }, "a channel is back from the archive");
    break;
  }
  return restored;
}

interface Batch {
  readonly companyId: number;
  readonly channelId: number;
  readonly batch: number;
}

async function restoreBatch(
  { redis, clickhouse, vault, log }: BringBackDeps,
  { companyId, channelId, batch }: Batch,
  places: readonly PlacedRow[],
  isCounting: (place: PlacedRow) => boolean,
): Promise<number> {
  const wanted = places.filter(isCounting);
  if (wanted.length === 0) return 0;
  const rows = await readRowsOf(await clickhouse(), wanted);
  const damaged: RowPlace[] = [];
  const shipments = rows
    .filter((row) => row.batch === batch)
    .flatMap((row): ArchivedShipment[] => {
      try {
        return [openRow(vault, row)];
      } catch (error) {
        log.error(
          { shipment: row.id, fault: (error as Error).name },
          "a row of the archive cannot be read",
        );
        damaged.push({ companyId, shipmentId: row.id, batch });
        return [];
      }
    });
  await noteDamaged(redis, damaged);
  const restored = await restoreShipments(redis, shipments);
  // A row that cannot be read goes on to count.
  if (shipments.length === wanted.length) {
    await markBatch(
      redis,
      companyId,
      batch,
      places.map(({ id }) => id),
    );
  }
  if (restored.length > 0) await noteRestored(redis, channelId, restored.length);
  return restored.length;
}
