/**
 * Search over Redis and the archive together. What counts in the archive is read before and after Redis was: where no shipment
 * has moved in between, both are of one moment. The archive is asked afterwards, by what counted then, so that it does not matter
 * what moves meanwhile.
 *
 * | question                                                        | asks the archive for          |
 * |-----------------------------------------------------------------|-------------------------------|
 * | nothing archived that can match                                 | nothing                       |
 * | a page before everything archived, total known from the summary | nothing                       |
 * | a page near the head                                            | its total, and as many heads  |
 * | a page further on                                               | its total, and all that stands before the page's end |
 * | a very deep page                                                | its total, marks on the way there, then the page |
 */

import { type Archive, hasArchived } from "#core/archive/store/archive.ts";
import {
  type ArchiveSummary,
  type ChannelSummary,
  type Counting,
  readArchiveSummary,
} from "#core/archive/store/archive-summary.ts";
import { firstWhere } from "#core/platform/process/first-where.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import type { IndexOrder } from "#core/platform/redis/keys.ts";
import { Unavailable } from "#core/platform/redis/store-unavailable.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { DAY_SHIFT } from "#core/shipments/store/columns.ts";
import { STATUSES } from "#core/statuses/rules/status.ts";
import { compareHits, type Hit, type HitPage } from "./index-ranges.ts";
import { searchAfter, searchShipments } from "./search.ts";
import type { Cut } from "./select-page.ts";
import type { ShipmentQuery } from "./shipment-query.ts";

/** Of one moment. */
export interface ArchiveQuestion {
  readonly query: Omit<ShipmentQuery, "offset" | "limit">;
  readonly counting: Counting;
  /** How many match, if that is known already: it helps to choose the faster way to answer. */
  readonly total?: number;
  /** Only those from here on, this one with them. */
  readonly from?: ArchivedHit | undefined;
  /** Only those up to here, this one with them. */
  readonly to?: ArchivedHit | undefined;
}

export type ArchivedHit = Hit;

/** Throws {Problem} 503 ARCHIVE_UNAVAILABLE. */
export interface SearchableArchive extends Archive {
  readonly hits: (
    question: ArchiveQuestion,
    offset: number,
    limit: number,
  ) => Promise<ArchivedHit[]>;
  readonly count: (question: ArchiveQuestion) => Promise<number>;
  /** Every `distance`-th of those that stand at the positions below `end`, from the first on. */
  readonly marks: (
    question: ArchiveQuestion,
    distance: number,
    end: number,
  ) => Promise<ArchivedHit[]>;
  /** Bytes on its disk. */
  readonly storedBytes: () => Promise<number>;
}

const STEADY_READINGS = limit(
  50,
  "attempts to read Redis while shipments move to the archive and back",
  "503",
);
/** Of a process that does without. */
export const NO_ARCHIVE: SearchableArchive = {
  read: async () => [],
  ahead: async () => ({ ids: [], next: null }),
  hits: async () => [],
  count: async () => 0,
  marks: async () => [],
  storedBytes: async () => 0,
};

/** Up to this end of a page both sides give all that stands before it. */
const HEADS = 1_000;
/** Up to this end the archive does: 400 kB, which take it less time than to count them off. */
export const ARCHIVE_HEADS = 32_768;
/** Positions from one mark to the next: a page beyond reads so many more of either side. */
const MARK_DISTANCE = 128;

/**
 * @param archiveHeads end of a page up to which the archive gives all that stands before it
 * @throws {Problem} 503 ARCHIVE_UNAVAILABLE
 */
export async function searchBoth(
  redis: Redis,
  archive: SearchableArchive,
  query: ShipmentQuery,
  archiveHeads = ARCHIVE_HEADS,
): Promise<HitPage> {
  if (!(await hasArchived(redis))) return searchShipments(redis, query);
  const end = query.offset + query.limit;
  for (let reading = 1; reading <= STEADY_READINGS; reading += 1) {
    const summary = await readArchiveSummary(redis, query.companyId);
    const about = summary && aboutArchived(summary, query);
    const isDeep = about !== null && end > HEADS;
    const both = { redis, archive, query, counting: summary ?? NOTHING, archiveHeads };
    const wanted = about === null ? query : { ...query, offset: 0, limit: end };
    const page = isDeep ? await deepPage(both, about) : await searchShipments(redis, wanted);
    const after = await readArchiveSummary(redis, query.companyId);
    if ((after?.moves ?? 0) !== (summary?.moves ?? 0)) continue;
    return isDeep || about === null ? page : headPage(both, about, page);
  }
  throw new Unavailable("shipments kept moving to the archive");
}

const NOTHING: Counting = { batch: 0, floor: 0, absentRows: [], absentBatches: [] };

interface Both {
  readonly redis: Redis;
  readonly archive: SearchableArchive;
  readonly query: ShipmentQuery;
  readonly counting: Counting;
  readonly archiveHeads: number;
}

/** What the summary tells of the shipments in the archive that may match. */
interface About {
  /** How many match; null = the archive has to be asked. */
  readonly total: number | null;
  /** All that match have at most this value in the order. */
  readonly highest: number;
}

/** @returns null if none can match */
function aboutArchived({ channels }: ArchiveSummary, query: ShipmentQuery): About | null {
  const { channelIds, statuses, shipFrom, updatedFrom, order, ids } = query;
  if (ids && !channelIds.some((id) => (ids.get(id)?.length ?? 0) > 0)) return null;
  const wanted = statuses?.map((status) => STATUSES.indexOf(status)) ?? [...STATUSES.keys()];
  const sizeOf = ({ counts }: ChannelSummary) =>
    wanted.reduce((sum, status) => sum + (counts.get(status) ?? 0), 0);
  const own = channelIds
    .flatMap((id) => channels.get(id) ?? [])
    .filter((channel) => sizeOf(channel) > 0)
    .filter(({ updated }) => updatedFrom === null || updated >= updatedFrom)
    .filter(({ shipped }) => shipFrom === null || shipped - DAY_SHIFT >= shipFrom);
  if (own.length === 0) return null;
  const { trackingNumber, exact, shipTo, updatedTo, idTo } = query;
  const isCounted =
    ids === undefined &&
    updatedTo === undefined &&
    idTo === undefined &&
    trackingNumber === null &&
    Object.keys(exact).length === 0 &&
    shipFrom === null &&
    shipTo === null &&
    updatedFrom === null;
  return {
    total: isCounted ? own.reduce((sum, channel) => sum + sizeOf(channel), 0) : null,
    highest: Math.max(...own.map((channel) => highestOf(channel, order.by))),
  };
}

function highestOf({ id, updated, shipped }: ChannelSummary, by: IndexOrder): number {
  return { id, upd: updated, ship: shipped - DAY_SHIFT }[by];
}

/** @param head the first ones of Redis, as many as end with the page */
async function headPage(
  { archive, query, counting }: Both,
  { total, highest }: About,
  head: HitPage,
): Promise<HitPage> {
  const { offset, limit, order } = query;
  const end = offset + limit;
  const last = head.hits[end - 1];
  const isBefore = last && order.descending && placeOf(last, order.by) > highest;
  if (isBefore && total !== null) {
    return { total: head.total + total, hits: head.hits.slice(offset, end) };
  }
  const question = await counted(archive, { query, counting }, total);
  const { total: archived } = question;
  const hits = archived === 0 || isBefore ? [] : await archive.hits(question, 0, end);
  return { total: head.total + archived, hits: joined(head.hits, hits, query).slice(offset, end) };
}

async function counted(
  archive: SearchableArchive,
  question: ArchiveQuestion,
  total: number | null,
): Promise<ArchiveQuestion & { readonly total: number }> {
  return { ...question, total: total ?? (await archive.count(question)) };
}

function placeOf({ id, score }: Hit, by: IndexOrder): number {
  return by === "id" ? id : score;
}

function joined(
  hot: readonly Hit[],
  archived: readonly Hit[],
  { order }: Pick<ShipmentQuery, "order">,
): Hit[] {
  return [...hot, ...archived].sort(compareHits(order));
}

/**
 * A deep page: too much precedes it to be read. A binary search among marks, which are archived hits at a fixed distance, tells how many
 * hits of Redis precede the page, to within that distance. The rest is read from both sides, the archive's from the mark before it.
 * Of a page that is not very deep every archived hit before it is a mark, and nothing is left to be read.
 */
async function deepPage(
  { redis, archive, query, counting, archiveHeads }: Both,
  about: About,
): Promise<HitPage> {
  const { offset, limit, order } = query;
  const question = await counted(archive, { query, counting }, about.total);
  const { total: archived } = question;
  if (archived === 0) return searchShipments(redis, query);
  if (offset >= archived) {
    const { total: hot } = await searchShipments(redis, { ...query, offset: 0, limit: 1 });
    if (offset >= hot + archived) return { total: hot + archived, hits: [] };
  }
  const distance = offset + limit <= archiveHeads ? 1 : MARK_DISTANCE;
  // Far enough to include the mark after the page, wherever the page begins.
  const end = offset + limit + 3 * distance + 1;
  const marks = await archive.marks(question, distance, end);
  const compare = compareHits(order);
  /** Archived ones before a hit, at most. */
  const mostBefore = (hit: Hit) => marksBefore(marks, hit, compare) * distance;
  const cut: Cut = {
    least: offset - archived,
    most: offset,
    isBefore: (hit, position) => position + mostBefore(hit) < offset,
  };
  const wanted = { ...query, limit: distance + limit };
  const { total: hot, first: before, hits } = await searchAfter(redis, wanted, cut);
  const total = hot + archived;
  if (offset >= total) return { total, hits: [] };
  const passed = Math.max(0, offset - before - distance);
  const mark = Math.floor(passed / distance);
  const needed = (passed % distance) + distance + limit;
  const after = mark + Math.ceil(needed / distance);
  const others =
    distance === 1
      ? marks.slice(mark, after)
      : await archive.hits({ ...question, from: marks[mark], to: marks[after] }, 0, needed);
  const first = offset - before - mark * distance;
  return { total, hits: joined(hits, others, query).slice(first, first + limit) };
}

/** How many of these, which are in order, stand before a hit. */
function marksBefore(
  marks: readonly Hit[],
  hit: Hit,
  compare: (one: Hit, other: Hit) => number,
): number {
  return firstWhere(marks.length, (at) => compare(marks[at] as Hit, hit) >= 0);
}
