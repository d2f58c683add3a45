/**
 * One page of any combination of ship dates, statusUpdatedAt and statuses, in any order, from the rows of `columns.ts`: some
 * 5 ns a row that must be looked at. Blocks whose bounds exclude a match are left out.
 */

import type { Redis } from "./client.ts";
import {
  type Block,
  DAY_SHIFT,
  idAt,
  ROWS_PER_BLOCK,
  readColumns,
  shippedAt,
  statusBits,
  updatedAt,
  WORDS,
} from "./columns.ts";
import { compareHits, type Hit, type HitPage } from "./index-ranges.ts";
import type { IndexOrder } from "./keys.ts";
import type { ShipmentQuery } from "./shipment-query.ts";

/** Parts that the values of the sort order are divided into: few rows stand in the part of a page. */
const PARTS = 1 << 16;

interface Filter {
  /** Days since the year 0, as in the rows. */
  readonly shipFrom: number;
  readonly shipTo: number;
  readonly updatedFrom: number;
  readonly statuses: number;
  /** Null = no exact value is asked for. */
  readonly exact: ReadonlyMap<number, Exact> | null;
}

/** Which shipments of a channel have all the exact values: their ids, or the bitmaps that all of them stand in. */
export type ExactMatches =
  | { readonly kind: "ids"; readonly ids: ReadonlySet<number> }
  | { readonly kind: "bitmaps"; readonly keys: readonly string[] };

/** Of one channel: a bitmap by rank, or ids. */
type Exact =
  | { readonly kind: "bits"; readonly bits: Uint8Array }
  | { readonly kind: "ids"; readonly ids: ReadonlySet<number> };

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
    shipFrom: Math.max(0, (query.shipFrom ?? -DAY_SHIFT) + DAY_SHIFT),
    shipTo: query.shipTo === null ? 2 ** 32 : query.shipTo + DAY_SHIFT,
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
  const hits = collect(blocks, filter, parts, place).sort(compareHits(order));
  const from = offset - place.before;
  return { total, hits: hits.slice(from, from + limit) };
}

function exactMatch(
  matching: ExactMatches,
  bitmaps: ReadonlyMap<string, Uint8Array | null>,
): Exact {
  if (matching.kind === "ids") return matching;
  const [first = NONE, ...others] = matching.keys.map((key) => bitmaps.get(key) ?? NONE);
  const bits = first.map((byte, at) =>
    others.reduce((left, other) => left & (other[at] ?? 0), byte),
  );
  return { kind: "bits", bits };
}

const NONE = new Uint8Array(0);

function mayMatch({ shipped, updated, statuses }: Block, filter: Filter): boolean {
  return (
    shipped.most + DAY_SHIFT >= filter.shipFrom &&
    shipped.least + DAY_SHIFT <= filter.shipTo &&
    updated.most >= filter.updatedFrom &&
    (statuses & filter.statuses) !== 0
  );
}

/** Row numbers of one block that match: written by `matchRows`, read before the next block. */
const matched = new Uint16Array(ROWS_PER_BLOCK);

/** @returns how many rows match */
function matchRows(block: Block, filter: Filter): number {
  if (filter.exact === null) return matchBounds(block, filter);
  const exact = filter.exact.get(block.channelId);
  if (!exact) return 0;
  return exact.kind === "bits"
    ? matchBits(block, filter, exact.bits)
    : matchIds(block, filter, exact.ids);
}

/** Eight rows at once where none of them is marked. Redis counts the bits of a byte from the highest. */
function matchBits(block: Block, filter: Filter, bits: Uint8Array): number {
  let found = 0;
  for (let start = 0; start < block.rows; start += 8) {
    const byte = bits[(block.first + start) >>> 3] ?? 0;
    if (byte === 0) continue;
    for (let bit = 0; bit < 8; bit += 1) {
      if ((byte & (128 >>> bit)) === 0 || !isWithin(block.words, start + bit, filter)) continue;
      matched[found] = start + bit;
      found += 1;
    }
  }
  return found;
}

function matchIds(block: Block, filter: Filter, ids: ReadonlySet<number>): number {
  let found = 0;
  for (let row = 0; row < block.rows; row += 1) {
    if (!isWithin(block.words, row, filter) || !ids.has(idAt(block, row))) continue;
    matched[found] = row;
    found += 1;
  }
  return found;
}

function matchBounds({ words, rows }: Block, filter: Filter): number {
  let found = 0;
  for (let row = 0; row < rows; row += 1) {
    if (!isWithin(words, row, filter)) continue;
    matched[found] = row;
    found += 1;
  }
  return found;
}

/** The inner test of every search: reads the words in place. */
function isWithin(words: Uint32Array, row: number, filter: Filter): boolean {
  const at = row * WORDS;
  const day = words[at + 2] as number;
  return (
    day >= filter.shipFrom &&
    day <= filter.shipTo &&
    (words[at + 1] as number) >= filter.updatedFrom &&
    ((1 << ((words[at + 3] as number) & 255)) & filter.statuses) !== 0
  );
}

/** Divides the values of an order into parts of equal width; a value is in one part. */
interface Parts {
  readonly by: IndexOrder;
  readonly least: number;
  readonly width: number;
}

function partsOf(blocks: readonly Block[], by: IndexOrder): Parts {
  let least = Number.POSITIVE_INFINITY;
  let most = Number.NEGATIVE_INFINITY;
  for (const block of blocks) {
    const [low, high] = boundsOf(block, by);
    least = Math.min(least, low);
    most = Math.max(most, high);
  }
  // No row was ever updated: all of them are in the first part.
  if (least === Number.POSITIVE_INFINITY) least = 1;
  return { by, least, width: Math.max(1, (most - least + 1) / (PARTS - 2)) };
}

function boundsOf(block: Block, by: IndexOrder): readonly [least: number, most: number] {
  switch (by) {
    case "id":
      return [idAt(block, 0), idAt(block, block.rows - 1)];
    case "ship":
      return [block.shipped.least, block.shipped.most];
    case "upd":
      return [block.updated.least, block.updated.most];
  }
}

function valueAt(block: Block, row: number, by: IndexOrder): number {
  switch (by) {
    case "id":
      return idAt(block, row);
    case "ship":
      return shippedAt(block, row);
    case "upd":
      return updatedAt(block, row);
  }
}

/** Values below the least, those that were never updated, share the first part. */
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
    const found = matchRows(block, filter);
    total += found;
    for (let at = 0; at < found; at += 1) {
      const part = partOf(parts, valueAt(block, matched[at] as number, parts.by));
      counts[part] = (counts[part] as number) + 1;
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
): Hit[] {
  const hits: Hit[] = [];
  for (const block of blocks) {
    const [low, high] = boundsOf(block, parts.by);
    const hasFirst = parts.by === "upd" && block.hasNever;
    if (partOf(parts, high) < first || (partOf(parts, low) > last && !hasFirst)) continue;
    const found = matchRows(block, filter);
    for (let at = 0; at < found; at += 1) {
      const row = matched[at] as number;
      const score = valueAt(block, row, parts.by);
      const part = partOf(parts, score);
      if (part >= first && part <= last) hits.push({ id: idAt(block, row), score });
    }
  }
  return hits;
}
