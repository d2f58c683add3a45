/**
 * Rows of the archive that count and cannot be opened, for operators. Whoever meets one notes it, and every round of the archiver looks
 * at them again: one that has been mended, or whose key is back, leaves the list.
 */
import type { Redis } from "#core/platform/redis/client.ts";
import { DAMAGED_ROWS_KEY } from "#core/platform/redis/keys.ts";
import { limit } from "#core/platform/schema/limit.ts";

/** Those that were noted first: a lost key damages every row, and a hundred of them tell as much. */
export const DAMAGED_ROWS_KEPT = limit(
  100,
  "damaged rows of the archive that are listed for operators",
  "those noted first are kept; each round of the archiver removes those that can be opened again",
);

export interface RowPlace {
  readonly companyId: number;
  readonly shipmentId: number;
  readonly batch: number;
}

export interface DamagedRow extends RowPlace {
  /** When it was noted, UTC milliseconds of the process' own clock. */
  readonly sinceMs: number;
}

const memberOf = ({ companyId, shipmentId, batch }: RowPlace) =>
  `${companyId} ${shipmentId} ${batch}`;

export async function noteDamaged(redis: Redis, rows: readonly RowPlace[]): Promise<void> {
  if (rows.length === 0) return;
  const score = Date.now();
  const members = rows.map((row) => ({ score, value: memberOf(row) }));
  await redis
    .multi()
    .zAdd(DAMAGED_ROWS_KEY, members, { condition: "NX" })
    .zRemRangeByRank(DAMAGED_ROWS_KEY, DAMAGED_ROWS_KEPT, -1)
    .exec();
}

/** In the order in which they were noted. */
export async function readDamaged(redis: Redis): Promise<DamagedRow[]> {
  const listed = await redis.zRangeWithScores(DAMAGED_ROWS_KEY, 0, -1);
  return listed.map(({ value, score: sinceMs }) => {
    const [companyId = 0, shipmentId = 0, batch = 0] = value.split(" ").map(Number);
    return { companyId, shipmentId, batch, sinceMs };
  });
}

export async function forgetDamaged(redis: Redis, rows: readonly RowPlace[]): Promise<void> {
  if (rows.length > 0) await redis.zRem(DAMAGED_ROWS_KEY, rows.map(memberOf));
}
