/**
 * One page of the rows that match, in any order, with the exact total. Only blocks whose values may stand on the page are
 * looked at: what the others hold is known by their counts and bounds. Positions are those of the ascending order.
 */

import { firstWhere } from "#core/platform/process/first-where.ts";
import type { IndexOrder } from "#core/platform/redis/keys.ts";
import { type Block, type Bounds, DAY_SHIFT } from "#core/shipments/store/columns.ts";
import { compareHits, type Hit, type HitPage, type SortOrder } from "./index-ranges.ts";
import { boundsIn, type Filter, knownCount, matchRows, narrowed, valuesOf } from "./match-rows.ts";

/** Parts of equal width that the values around a page are divided into; one before and one after them. */
const PARTS = 1 << 14;
/** Matches that are sorted together; more of them are divided again. */
const SORTED_TOGETHER = 2_000;

interface Counted {
  readonly block: Block;
  /** Rows that match. */
  readonly count: number;
  /** Of the values that may match. */
  readonly bounds: Bounds;
  /** Which they are; null where they were counted without being looked at. */
  readonly rows: Uint16Array | null;
}

export function selectPage(
  blocks: readonly Block[],
  filter: Filter,
  { by, descending }: SortOrder,
  offset: number,
  limit: number,
): HitPage {
  const { total, between } = ordered(blocks, filter, { by, descending });
  return { total, hits: between(offset, offset + limit) };
}

/** Where a page begins whose position is not known in advance. */
export interface Cut {
  /** The lowest and the highest possible position of its first hit. */
  readonly least: number;
  readonly most: number;
  /** Whether a hit comes before the page. If one does not, no hit at a higher position does either. */
  readonly isBefore: (hit: Hit, position: number) => boolean;
}

export interface CutPage extends HitPage {
  /** Position of the first hit. */
  readonly first: number;
}

/** Looks at the rows only a few times, however many positions are possible. */
export function selectAfter(
  blocks: readonly Block[],
  filter: Filter,
  order: SortOrder,
  cut: Cut,
  limit: number,
): CutPage {
  const { counted, total, between, hitOf } = ordered(blocks, filter, order);
  const { by, descending } = order;
  const { isBefore } = cut;
  const [from, to] = possiblePositions(cut, total);
  const first = descending
    ? total -
      lowerSide(counted, filter, by, total - to, total - from, (row, position) => {
        return !isBefore(hitOf(row), total - 1 - position);
      })
    : lowerSide(counted, filter, by, from, to, (row, position) => isBefore(hitOf(row), position));
  return { total, first, hits: between(first, first + limit) };
}

/** From..to among so many hits. */
export function possiblePositions(
  { least, most }: Pick<Cut, "least" | "most">,
  total: number,
): [from: number, to: number] {
  return [Math.min(total, Math.max(0, least)), Math.min(total, most)];
}

/** What matches, in order: how many, and those at the positions from..to-1. */
interface Ordered {
  readonly counted: readonly Counted[];
  readonly total: number;
  readonly between: (from: number, to: number) => Hit[];
  /** Rows count days from the year 0, and hits from 1970. */
  readonly hitOf: (row: Hit) => Hit;
}

function ordered(blocks: readonly Block[], filter: Filter, { by, descending }: SortOrder): Ordered {
  const counted = countBlocks(blocks, filter, by);
  const total = sum(counted);
  const shift = by === "ship" ? DAY_SHIFT : 0;
  const hitOf = ({ id, score }: Hit) => ({ id, score: score - shift });
  return {
    counted,
    total,
    hitOf,
    between(from, end) {
      const to = Math.min(total, end);
      if (from >= to) return [];
      const [start, stop] = descending ? [total - to, total - from] : [from, to];
      const hits = select(counted, filter, by, start, stop).map(hitOf);
      return descending ? hits.reverse() : hits;
    },
  };
}

/**
 * How many matches are below a cut that is known to be at one of the positions from..to. The highest value of each part tells
 * which part has the cut, and the matches of that part tell its position.
 * @param isLower true for the first matches in ascending order, and false for all that follow
 */
function lowerSide(
  counted: readonly Counted[],
  filter: Filter,
  by: IndexOrder,
  from: number,
  to: number,
  isLower: Cut["isBefore"],
): number {
  if (from >= to) return from;
  const around = valuesAround(counted, from, to);
  const { near, before } = standingAt(counted, around);
  const { counts, least, width } = divide(near, filter, by, around);
  let end = before;
  const ends = counts.map((count) => {
    end += count;
    return end;
  });
  const part = firstWhere(PARTS, (at) => {
    const highest = least + at * width - 1;
    const id = by === "id" ? highest : Number.MAX_SAFE_INTEGER;
    return !isLower({ id, score: highest }, (ends[at] as number) - 1);
  });
  if (part === 0) return from;
  if (part >= PARTS - 1) return to;
  const count = counts[part] as number;
  const passed = (ends[part] as number) - count;
  const start = least + (part - 1) * width;
  const values = { least: start, most: start + width - 1 };
  const within = lowerWithin(near, filter, by, { values, count, before: passed }, isLower);
  return Math.min(to, Math.max(from, within));
}

function lowerWithin(
  near: readonly Counted[],
  filter: Filter,
  by: IndexOrder,
  { values, count, before }: Segment,
  isLower: Cut["isBefore"],
): number {
  if (count <= SORTED_TOGETHER) {
    const hits = collect(near, filter, by, values).sort(compareHits({ by, descending: false }));
    return before + firstWhere(count, (at) => !isLower(hits[at] as Hit, before + at));
  }
  const own = narrowed(filter, by, values);
  const blocks = near.map(({ block }) => block);
  // Very many with one value stand in the order of their ids.
  const order = values.least < values.most ? by : "id";
  const isOwnLower: Cut["isBefore"] = ({ id, score }, position) =>
    isLower({ id, score: order === by ? score : values.least }, before + position);
  return before + lowerSide(countBlocks(blocks, own, order), own, order, 0, count, isOwnLower);
}

function countBlocks(blocks: readonly Block[], filter: Filter, by: IndexOrder): Counted[] {
  const counted: Counted[] = [];
  for (const block of blocks) {
    const known = knownCount(block, filter);
    const rows = known === null ? matchRows(block, filter).slice() : null;
    const count = rows?.length ?? known ?? 0;
    if (count > 0) counted.push({ block, count, bounds: boundsIn(block, by, filter), rows });
  }
  return counted;
}

/** The matches at the positions from..to-1. */
function select(
  counted: readonly Counted[],
  filter: Filter,
  by: IndexOrder,
  from: number,
  to: number,
): Hit[] {
  const around = valuesAround(counted, from, to);
  const { near, before } = standingAt(counted, around);
  const parts = divide(near, filter, by, around);
  return segmentsOf(parts, before, from, to).flatMap((segment) => {
    const start = Math.max(0, from - segment.before);
    const end = Math.min(segment.count, to - segment.before);
    return selectSegment(near, filter, by, segment, start, end);
  });
}

function selectSegment(
  near: readonly Counted[],
  filter: Filter,
  by: IndexOrder,
  { values, count }: Segment,
  start: number,
  end: number,
): Hit[] {
  if (count <= SORTED_TOGETHER) {
    return collect(near, filter, by, values)
      .sort(compareHits({ by, descending: false }))
      .slice(start, end);
  }
  const own = narrowed(filter, by, values);
  const blocks = near.map(({ block }) => block);
  if (values.least < values.most) return select(countBlocks(blocks, own, by), own, by, start, end);
  // Very many with one value stand in the order of their ids.
  const hits = select(countBlocks(blocks, own, "id"), own, "id", start, end);
  return hits.map(({ id }) => ({ id, score: values.least }));
}

/** Bounds of the values that may stand at the positions: fewer matches are surely below, and above. */
function valuesAround(counted: readonly Counted[], from: number, to: number): Bounds {
  const ascending = [...counted].sort((one, other) => one.bounds.least - other.bounds.least);
  const descending = [...counted].sort((one, other) => other.bounds.most - one.bounds.most);
  return {
    least: ascending[passing(ascending, from)]?.bounds.least ?? 0,
    most: descending[passing(descending, sum(counted) - to)]?.bounds.most ?? 0,
  };
}

/** The blocks that may have values within these bounds, and how many matches are in the blocks below them. */
function standingAt(counted: readonly Counted[], { least, most }: Bounds) {
  return {
    near: counted.filter(({ bounds }) => bounds.most >= least && bounds.least <= most),
    before: sum(counted.filter(({ bounds }) => bounds.most < least)),
  };
}

/** The index where more than so many matches have gone by. */
function passing(counted: readonly Counted[], matches: number): number {
  let passed = 0;
  return counted.findIndex(({ count }) => {
    passed += count;
    return passed > matches;
  });
}

interface Parts {
  /** Matches in each part; the first holds what is below `least`. */
  readonly counts: Uint32Array;
  readonly least: number;
  /** A power of two. */
  readonly width: number;
}

function divide(
  near: readonly Counted[],
  filter: Filter,
  by: IndexOrder,
  { least, most }: Bounds,
): Parts {
  const counts = new Uint32Array(PARTS);
  const width = 2 ** Math.max(0, Math.ceil(Math.log2((most - least + 1) / (PARTS - 2))));
  const perValue = 1 / width;
  for (const one of near) {
    const values = valuesOf(one.block, by);
    const rows = rowsOf(one, filter);
    for (let at = 0; at < rows.length; at += 1) {
      const value = values[rows[at] as number] as number;
      const part =
        value < least ? 0 : value > most ? PARTS - 1 : 1 + Math.floor((value - least) * perValue);
      counts[part] = (counts[part] as number) + 1;
    }
  }
  return { counts, least, width };
}

/** Neighbouring parts with matches that are asked for. */
interface Segment {
  readonly values: Bounds;
  readonly count: number;
  /** Matches that stand before it. */
  readonly before: number;
}

function segmentsOf(
  { counts, least, width }: Parts,
  before: number,
  from: number,
  to: number,
): Segment[] {
  const segments: Segment[] = [];
  let passed = before;
  for (let part = 0; part < PARTS && passed < to; part += 1) {
    const count = counts[part] as number;
    if (count > 0 && passed + count > from) {
      const start = least + (part - 1) * width;
      const own = { values: { least: start, most: start + width - 1 }, count, before: passed };
      const last = segments.at(-1);
      if (last && last.count + count <= SORTED_TOGETHER) segments.splice(-1, 1, joined(last, own));
      else segments.push(own);
    }
    passed += count;
  }
  return segments;
}

function joined(one: Segment, next: Segment): Segment {
  const values = { least: one.values.least, most: next.values.most };
  return { values, count: one.count + next.count, before: one.before };
}

function collect(
  near: readonly Counted[],
  filter: Filter,
  by: IndexOrder,
  { least, most }: Bounds,
): Hit[] {
  const hits: Hit[] = [];
  for (const one of near) {
    if (one.bounds.most < least || one.bounds.least > most) continue;
    const values = valuesOf(one.block, by);
    const rows = rowsOf(one, filter);
    for (let at = 0; at < rows.length; at += 1) {
      const row = rows[at] as number;
      const score = values[row] as number;
      if (score >= least && score <= most) hits.push({ id: one.block.ids[row] as number, score });
    }
  }
  return hits;
}

/** Good until the next block is looked at. */
function rowsOf({ block, rows }: Counted, filter: Filter): Uint16Array {
  return rows ?? matchRows(block, filter);
}

function sum(counted: readonly Counted[]): number {
  return counted.reduce((total, { count }) => total + count, 0);
}
