/** Damaged rows of the archive, looked at again: what has been mended, or counts no more, leaves the list. */
import { channelsOfShipments } from "#core/archive/store/archive.ts";
import { counts, readArchiveSummary } from "#core/archive/store/archive-summary.ts";
import { forgetDamaged, type RowPlace, readDamaged } from "#core/archive/store/damaged-rows.ts";
import { openRow, readRows } from "./archive-table.ts";
import type { MoveDeps } from "./archiver.ts";

/** @returns how many are still damaged, of those that are noted */
export async function recheckDamaged({
  redis,
  live,
  vault,
  clickhouse,
}: Omit<MoveDeps, "log">): Promise<number> {
  const noted = await readDamaged(redis);
  if (noted.length === 0) return 0;
  const ids = noted.map(({ shipmentId }) => shipmentId);
  const channelIds = channelsOfShipments(await live.refresh(), ids);
  const stillDamaged = new Set<string>();
  for (const row of await readRows(await clickhouse(), ids, channelIds)) {
    try {
      openRow(vault, row);
    } catch {
      stillDamaged.add(nameOf({ companyId: row.company, shipmentId: row.id, batch: row.batch }));
    }
  }
  const mended: RowPlace[] = [];
  for (const [companyId, own] of Map.groupBy(noted, (row) => row.companyId)) {
    const summary = await readArchiveSummary(redis, companyId);
    const isCounting = summary ? counts(summary) : () => false;
    for (const row of own) {
      const { shipmentId: id, batch } = row;
      if (!stillDamaged.has(nameOf(row)) || !isCounting({ id, batch })) mended.push(row);
    }
  }
  await forgetDamaged(redis, mended);
  return noted.length - mended.length;
}

function nameOf({ companyId, shipmentId, batch }: RowPlace): string {
  return `${companyId} ${shipmentId} ${batch}`;
}
