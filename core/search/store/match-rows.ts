/** Which rows of a block a search asks for: about 2 ns a row that must be looked at. */

import { firstWhere } from "#core/platform/process/first-where.ts";
import type { IndexOrder } from "#core/platform/redis/keys.ts";
import { type Block, type Bounds, ROWS_PER_BLOCK } from "#core/shipments/store/columns.ts";

/** Inclusive bounds; `ship` in days since the year 0, as in the rows. */
export interface Filter extends Readonly<Record<IndexOrder, Bounds>> {
  /** Bit n: status n. */
  readonly statuses: number;
  /** By channel, a bit for each rank, from the highest of a byte as Redis counts; null = no exact value is asked for. */
  readonly exact: ReadonlyMap<number, Uint8Array> | null;
}

export function narrowed(filter: Filter, by: IndexOrder, { least, most }: Bounds): Filter {
  const own = filter[by];
  const bounds = { least: Math.max(least, own.least), most: Math.min(most, own.most) };
  return { ...filter, [by]: bounds };
}

/** Row numbers of one block that match: written by `matchRows`, read before the next block. */
const matched = new Uint16Array(ROWS_PER_BLOCK);

/** Bounds of the block's rows that may match. */
export function boundsIn(block: Block, by: IndexOrder, filter: Filter): Bounds {
  const own = ownBounds(block, by);
  const { least, most } = filter[by];
  return { least: Math.max(own.least, least), most: Math.min(own.most, most) };
}

function ownBounds(block: Block, by: IndexOrder): Bounds {
  switch (by) {
    case "id":
      return { least: block.ids[0] ?? 0, most: block.ids[block.rows - 1] ?? -1 };
    case "ship":
      return block.shippedBounds;
    case "upd":
      return block.updatedBounds;
  }
}

export function valuesOf(block: Block, by: IndexOrder): Float64Array | Uint32Array {
  switch (by) {
    case "id":
      return block.ids;
    case "ship":
      return block.shipped;
    case "upd":
      return block.updated;
  }
}

function isInside(own: Bounds, { least, most }: Bounds): boolean {
  return own.least >= least && own.most <= most;
}

function isApart(own: Bounds, { least, most }: Bounds): boolean {
  return own.most < least || own.least > most;
}

/** How many rows match where that is known without looking at them: the block lies apart from a bound or within all. */
export function knownCount(block: Block, filter: Filter): number | null {
  if (ORDERS.some((by) => isApart(ownBounds(block, by), filter[by]))) return 0;
  const isWhole = ORDERS.every((by) => isInside(ownBounds(block, by), filter[by]));
  if (filter.exact !== null || !isWhole) return null;
  let count = 0;
  block.counts.forEach((rows, status) => {
    if ((filter.statuses >>> status) & 1) count += rows;
  });
  return count;
}

const ORDERS = ["id", "ship", "upd"] as const;

/** @returns the numbers of the rows that match; they hold until the next block is looked at */
export function matchRows(block: Block, filter: Filter): Uint16Array {
  return matched.subarray(0, countMatches(block, filter));
}

function countMatches(block: Block, filter: Filter): number {
  const from = firstRow(block, filter.id.least);
  const to = firstRow(block, filter.id.most + 1);
  if (filter.exact !== null) return matchBits(block, filter, from, to);
  const isWhole =
    isInside(block.shippedBounds, filter.ship) && isInside(block.updatedBounds, filter.upd);
  return isWhole
    ? matchStatuses(block, filter.statuses, from, to)
    : matchBounds(block, filter, from, to);
}

/** The first row whose id is at least this. */
export function firstRow({ ids, rows }: Pick<Block, "ids" | "rows">, id: number): number {
  return firstWhere(rows, (row) => (ids[row] as number) >= id);
}

function matchStatuses({ statuses }: Block, wanted: number, from: number, to: number): number {
  let found = 0;
  for (let row = from; row < to; row += 1) {
    // Written in any case, so that there is no branch.
    matched[found] = row;
    found += (wanted >>> (statuses[row] as number)) & 1;
  }
  return found;
}

function matchBounds(
  block: Block,
  { ship, upd, statuses }: Filter,
  from: number,
  to: number,
): number {
  const { shipped, updated } = block;
  const [shipFrom, shipTo, updatedFrom, updatedTo] = [ship.least, ship.most, upd.least, upd.most];
  let found = 0;
  for (let row = from; row < to; row += 1) {
    const day = shipped[row] as number;
    if (day < shipFrom || day > shipTo) continue;
    const second = updated[row] as number;
    if (second < updatedFrom || second > updatedTo) continue;
    matched[found] = row;
    found += (statuses >>> (block.statuses[row] as number)) & 1;
  }
  return found;
}

/** Eight rows at once where none of them is marked. */
function matchBits(block: Block, filter: Filter, from: number, to: number): number {
  const bits = filter.exact?.get(block.channelId);
  if (!bits) return 0;
  const { ship, upd, statuses } = filter;
  let found = 0;
  for (let start = from & ~7; start < to; start += 8) {
    const byte = bits[(block.first + start) >>> 3] ?? 0;
    if (byte === 0) continue;
    for (let row = Math.max(start, from); row < start + 8 && row < to; row += 1) {
      if ((byte & (128 >>> (row & 7))) === 0) continue;
      const day = block.shipped[row] as number;
      const second = block.updated[row] as number;
      if (day < ship.least || day > ship.most || second < upd.least || second > upd.most) continue;
      matched[found] = row;
      found += (statuses >>> (block.statuses[row] as number)) & 1;
    }
  }
  return found;
}
