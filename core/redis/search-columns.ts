/**
 * One page of any combination of ship dates, statusUpdatedAt and statuses, in any order, from the rows of `columns.ts`: some
 * 5 ns a row that must be looked at. Blocks whose bounds exclude a match are left out.
 */

import type { Redis } from "./client.ts";
import {
  type Block,
  idAt,
  readColumns,
  shippedAt,
  statusBitAt,
  statusBits,
  updatedAt,
} from "./columns.ts";
import { compareHits, type Hit, type HitPage } from "./index-ranges.ts";
import type { IndexOrder } from "./keys.ts";
import type { ShipmentQuery } from "./shipment-query.ts";

/** Parts that the values of the sort order are divided into: few rows stand in the part of a page. */
const PARTS = 1 << 16;

interface Filter {
  readonly shipFrom: number;
  readonly shipTo: number;
  readonly updatedFrom: number;
  readonly statuses: number;
  /** Null = no exact value is asked for. */
  readonly exact: ReadonlyMap<number, ExactMatch> | null;
}

/** Which shipments of a channel have all the exact values: their ids, or the bitmaps that all of them stand in. */
export type ExactMatches =
  | { readonly kind: "ids"; readonly ids: ReadonlySet<number> }
  | { readonly kind: "bitmaps"; readonly keys: readonly string[] };

type ExactMatch = (block: Block, row: number) => boolean;

/** @param exact by channel, for all of them; null = no exact value is asked for */
export async function searchColumns(
  redis: Redis,
  query: ShipmentQuery,
  exact: ReadonlyMap<number, ExactMatches> | null = null,
): Promise<HitPage> {
  const { companyId, channelIds, order, offset, limit } = query;
  const bitmapKeys = [...(exact?.values() ?? [])].flatMap((one) =>
    one.kind === "bitmaps" ? one.keys : [],
  );
  const columns = await readColumns(redis, companyId, channelIds, bitmapKeys);
  const bitmaps = new Map(bitmapKeys.map((key, at) => [key, columns.bitmaps[at] ?? null]));
  const filter: Filter = {
    shipFrom: query.shipFrom ?? Number.NEGATIVE_INFINITY,
    shipTo: query.shipTo ?? Number.POSITIVE_INFINITY,
    // A shipment that was never updated stands there with 0.
    updatedFrom: query.updatedFrom === null ? 0 : Math.max(1, query.updatedFrom),
    statuses: query.statuses === null ? -1 : statusBits(query.statuses),
    exact: exact && new Map([...exact].map(([id, one]) => [id, exactMatch(one, bitmaps)])),
  };
  const blocks = columns.blocks.filter((block) => mayMatch(block, filter));
  const parts = partsOf(blocks, order.by);
  const { counts, total } = count(blocks, filter, parts);
  if (offset >= total) return { total, hits: [] };
  const place = findPart(counts, order.descending, offset, limit);
  const hits = collect(blocks, filter, parts, place, order.by).sort(compareHits(order));
  const from = offset - place.before;
  return { total, hits: hits.slice(from, from + limit) };
}

function exactMatch(
  matching: ExactMatches,
  bitmaps: ReadonlyMap<string, Uint8Array | null>,
): ExactMatch {
  if (matching.kind === "ids") return (block, row) => matching.ids.has(idAt(block, row));
  const [first = NONE, ...others] = matching.keys.map((key) => bitmaps.get(key) ?? NONE);
  const all = first.map((byte, at) => others.reduce((left, bits) => left & (bits[at] ?? 0), byte));
  // Redis counts the bits of a byte from the highest.
  return (block, row) => {
    const rank = block.first + row;
    return ((all[rank >>> 3] ?? 0) & (128 >>> (rank & 7))) !== 0;
  };
}

const NONE = new Uint8Array(0);

function mayMatch({ shipped, updated, statuses }: Block, filter: Filter): boolean {
  return (
    shipped.most >= filter.shipFrom &&
    shipped.least <= filter.shipTo &&
    updated.most >= filter.updatedFrom &&
    (statuses & filter.statuses) !== 0
  );
}

function matches(block: Block, row: number, filter: Filter): boolean {
  const day = shippedAt(block, row);
  return (
    day >= filter.shipFrom &&
    day <= filter.shipTo &&
    updatedAt(block, row) >= filter.updatedFrom &&
    (statusBitAt(block, row) & filter.statuses) !== 0 &&
    (filter.exact?.get(block.channelId)?.(block, row) ?? true)
  );
}

/** Divides the values of an order into parts of equal width; a value is in one part. */
interface Parts {
  readonly value: (block: Block, row: number) => number;
  readonly bounds: (block: Block) => readonly [least: number, most: number];
  readonly least: number;
  readonly width: number;
}

function partsOf(blocks: readonly Block[], by: IndexOrder): Parts {
  const value = VALUES[by];
  const bounds = BOUNDS[by];
  let least = Number.POSITIVE_INFINITY;
  let most = Number.NEGATIVE_INFINITY;
  for (const block of blocks) {
    const [low, high] = bounds(block);
    least = Math.min(least, low);
    most = Math.max(most, high);
  }
  // No row was ever updated: all of them are in the first part.
  if (least === Number.POSITIVE_INFINITY) least = 1;
  return { value, bounds, least, width: Math.max(1, (most - least + 1) / (PARTS - 2)) };
}

const VALUES: Readonly<Record<IndexOrder, (block: Block, row: number) => number>> = {
  id: idAt,
  ship: shippedAt,
  upd: updatedAt,
};

const BOUNDS: Readonly<Record<IndexOrder, (block: Block) => readonly [number, number]>> = {
  id: (block) => [idAt(block, 0), idAt(block, block.rows - 1)],
  ship: ({ shipped }) => [shipped.least, shipped.most],
  upd: ({ updated }) => [updated.least, updated.most],
};

/** Values below the least share the first part. */
function partOf({ least, width }: Parts, value: number): number {
  return value < least ? 0 : 1 + Math.floor((value - least) / width);
}

function count(
  blocks: readonly Block[],
  filter: Filter,
  parts: Parts,
): { readonly counts: Uint32Array; readonly total: number } {
  const counts = new Uint32Array(PARTS);
  let total = 0;
  for (const block of blocks) {
    for (let row = 0; row < block.rows; row += 1) {
      if (!matches(block, row, filter)) continue;
      const part = partOf(parts, parts.value(block, row));
      counts[part] = (counts[part] ?? 0) + 1;
      total += 1;
    }
  }
  return { counts, total };
}

interface Place {
  readonly first: number;
  readonly last: number;
  /** Matches that stand before the first part, in the order asked for. */
  readonly before: number;
}

/** The parts that hold the page. */
function findPart(counts: Uint32Array, descending: boolean, offset: number, limit: number): Place {
  let passed = 0;
  let start: number | null = null;
  let before = 0;
  for (let step = 0; step < PARTS; step += 1) {
    const part = descending ? PARTS - 1 - step : step;
    const own = counts[part] ?? 0;
    if (own === 0) continue;
    if (start === null && passed + own > offset) {
      start = part;
      before = passed;
    }
    passed += own;
    if (start !== null && passed >= offset + limit) return placeOf(start, part, before);
  }
  return placeOf(start ?? 0, descending ? 0 : PARTS - 1, before);
}

function placeOf(start: number, end: number, before: number): Place {
  return { first: Math.min(start, end), last: Math.max(start, end), before };
}

function collect(
  blocks: readonly Block[],
  filter: Filter,
  parts: Parts,
  { first, last }: Place,
  order: IndexOrder,
): Hit[] {
  const hits: Hit[] = [];
  for (const block of blocks) {
    const [low, high] = parts.bounds(block);
    // Rows that were never updated are in the first part.
    const least = order === "upd" && block.hasNever ? 0 : low;
    if (partOf(parts, high) < first || partOf(parts, least) > last) continue;
    for (let row = 0; row < block.rows; row += 1) {
      const score = parts.value(block, row);
      const part = partOf(parts, score);
      if (part < first || part > last || !matches(block, row, filter)) continue;
      hits.push({ id: idAt(block, row), score });
    }
  }
  return hits;
}
