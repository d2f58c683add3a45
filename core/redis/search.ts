/**
 * Search of shipments (document 1, `GET /v2/shipments`) over the sorted sets of the company's partition.
 *
 * | filters                                              | total           | page                                        |
 * |------------------------------------------------------|-----------------|---------------------------------------------|
 * | status, and a range of the index that sorts          | counts of ranges | head or rank of the ranges                 |
 * | ship dates, sorted by id                             | counts of ranges | each day is a list by id: as above          |
 * | one range of an index that does not sort             | counts of ranges | the sorting index is walked and checked; the |
 * |                                                      |                 | range is read and sorted where that is long |
 * | an exact value, or ranges of two indices             | the smallest set or range is read in chunks and checked        |
 */
import type { Status } from "#core/domain/status.ts";
import type { Redis } from "./client.ts";
import {
  CHUNK,
  chunksOf,
  compareHits,
  countRanges,
  type Hit,
  type HitPage,
  type IndexRange,
  pipelined,
  readAll,
  readPage,
  type SortOrder,
} from "./index-ranges.ts";
import {
  companyKeys,
  companyPartition,
  type ExactField,
  type IndexOrder,
  indexMember,
} from "./keys.ts";

export interface ShipmentQuery {
  readonly companyId: number;
  readonly channelIds: readonly number[];
  readonly trackingNumber: string | null;
  readonly exact: Readonly<Partial<Record<ExactField, string>>>;
  /** Days since 1970, inclusive. */
  readonly shipFrom: number | null;
  readonly shipTo: number | null;
  /** Null = any; else without repetition. */
  readonly statuses: readonly Status[] | null;
  /** Seconds since 1970: statusUpdatedAt at or after it. */
  readonly updatedFrom: number | null;
  readonly order: SortOrder;
  readonly offset: number;
  /** At most 1,000. */
  readonly limit: number;
}

/** Matches up to which a range is read and sorted at once. */
const SORTED_AT_ONCE = 5_000;
/** Elements of the sorting index that are walked before the range is read and sorted instead. */
const WALK_LIMIT = 20_000;
/** Days (times statuses, times channels) that are merged as lists by id. */
const DAY_LISTS_LIMIT = 400;
/** Members of a set read with one command. */
const SMALL_SET = CHUNK;

export function searchShipments(redis: Redis, query: ShipmentQuery): Promise<HitPage> {
  const { order, offset, limit } = query;
  const ship = query.shipFrom !== null || query.shipTo !== null;
  const updated = query.updatedFrom !== null;
  if (query.trackingNumber !== null || Object.keys(query.exact).length > 0) {
    return sorted(readExact(redis, query), query);
  }
  if (ship && updated) return sorted(readTwoRanges(redis, query), query);
  if (ship && order.by !== "ship") return searchAcross(redis, query, "ship");
  if (updated && order.by !== "upd") return searchAcross(redis, query, "upd");
  return readPage(redis, rangesOf(query, order.by), order, offset, limit);
}

async function sorted(found: Promise<Hit[]>, query: ShipmentQuery): Promise<HitPage> {
  const { order, offset, limit } = query;
  const hits = (await found).sort(compareHits(order));
  return { total: hits.length, hits: hits.slice(offset, offset + limit) };
}

/** The ranges of one index that hold every match of its own filter and of the status filter. */
function rangesOf(query: ShipmentQuery, by: IndexOrder): IndexRange[] {
  const keys = companyKeys(companyPartition(query.companyId));
  const [from, to] = boundsOf(query, by);
  return query.channelIds.flatMap((channelId) =>
    (query.statuses ?? [undefined]).map((status) => ({
      key: keys.index(channelId, by, status),
      from,
      to,
    })),
  );
}

function boundsOf(query: ShipmentQuery, by: IndexOrder): [number | null, number | null] {
  switch (by) {
    case "id":
      return [null, null];
    case "ship":
      return [query.shipFrom, query.shipTo];
    case "upd":
      // A shipment that was never updated stands there with 0.
      return [query.updatedFrom === null ? null : Math.max(query.updatedFrom, 1), null];
  }
}

/** A range of one index, sorted by another one. */
async function searchAcross(
  redis: Redis,
  query: ShipmentQuery,
  filter: "ship" | "upd",
): Promise<HitPage> {
  const { order, offset, limit } = query;
  const ranges = rangesOf(query, filter);
  const counts = await countRanges(redis, ranges);
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (offset >= total) return { total, hits: [] };
  if (total > SORTED_AT_ONCE) {
    const days = filter === "ship" && order.by === "id" ? await dayLists(redis, ranges) : null;
    if (days) return readPage(redis, days, order, offset, limit);
    const walked = await walk(redis, query, filter);
    if (walked) return { total, hits: walked };
  }
  return sorted(rescored(redis, query, await readAll(redis, ranges)), query);
}

/** Every ship date of the ranges as a list of its own; null where they are too many. */
async function dayLists(redis: Redis, ranges: readonly IndexRange[]): Promise<IndexRange[] | null> {
  type Edge = { score: number }[];
  const edges = (descending: boolean) =>
    pipelined<IndexRange, Edge>(redis, ranges, (pipeline, { key, from, to }) => {
      const bounds = [from ?? "-inf", to ?? "+inf"] as const;
      const [start, stop] = descending ? [bounds[1], bounds[0]] : bounds;
      const options = { BY: "SCORE", REV: descending, LIMIT: { offset: 0, count: 1 } } as const;
      return pipeline.zRangeWithScores(key, start, stop, options);
    });
  const [firsts, lasts] = await Promise.all([edges(false), edges(true)]);
  const spans = ranges.flatMap(({ key }, at) => {
    const first = firsts[at]?.[0]?.score;
    const last = lasts[at]?.[0]?.score;
    return first === undefined || last === undefined ? [] : [{ key, first, last }];
  });
  const lists = spans.reduce((sum, { first, last }) => sum + last - first + 1, 0);
  if (lists > DAY_LISTS_LIMIT) return null;
  return spans.flatMap(({ key, first, last }) =>
    Array.from({ length: last - first + 1 }, (_, day) => ({
      key,
      from: first + day,
      to: first + day,
    })),
  );
}

/** Walks the one index that sorts and keeps what the filter's index holds; null when the page lies too far. */
async function walk(
  redis: Redis,
  query: ShipmentQuery,
  filter: "ship" | "upd",
): Promise<Hit[] | null> {
  const { order, offset, limit, channelIds } = query;
  const [range, ...others] = rangesOf(query, order.by);
  const [channelId] = channelIds;
  if (!range || channelId === undefined || others.length > 0) return null;
  const found: Hit[] = [];
  let walked = 0;
  for await (const chunk of chunksOf(redis, [range], order.descending)) {
    const matching = await matchingIds(redis, query, channelId, [filter], chunk);
    found.push(...chunk.filter(({ id }) => matching.has(id)));
    walked += chunk.length;
    if (found.length >= offset + limit) return found.slice(offset, offset + limit);
    if (walked >= WALK_LIMIT) return null;
  }
  return found.slice(offset, offset + limit);
}

/** Reads the range with fewer elements and keeps what the other one holds too. */
async function readTwoRanges(redis: Redis, query: ShipmentQuery): Promise<Hit[]> {
  const sizes = await Promise.all(
    (["ship", "upd"] as const).map(async (by) => {
      const counts = await countRanges(redis, rangesOf(query, by));
      return { by, size: counts.reduce((sum, count) => sum + count, 0) };
    }),
  );
  const [smaller] = sizes.sort((one, other) => one.size - other.size);
  const by = smaller?.by ?? "ship";
  const other = by === "ship" ? "upd" : "ship";
  const found: Hit[] = [];
  for (const channelId of query.channelIds) {
    const single = { ...query, channelIds: [channelId] };
    for await (const chunk of chunksOf(redis, rangesOf(single, by))) {
      const matching = await matchingIds(redis, query, channelId, [other], chunk);
      found.push(...chunk.filter(({ id }) => matching.has(id)));
    }
  }
  return rescored(redis, query, unique(found));
}

/** Shipments with all the exact values, then checked against every other filter. */
async function readExact(redis: Redis, query: ShipmentQuery): Promise<Hit[]> {
  const found: Hit[] = [];
  for (const channelId of query.channelIds) {
    for await (const chunk of exactIds(redis, query, channelId)) {
      const hits = chunk.map((id) => ({ id, score: 0 }));
      const filters = (["ship", "upd"] as const).filter((by) => hasBounds(query, by));
      const kept = await matchingIds(redis, query, channelId, filters, hits);
      const chosen = hits.filter(({ id }) => kept.has(id));
      found.push(...(await withStatus(redis, query, channelId, chosen)));
    }
  }
  return rescored(redis, query, unique(found));
}

function hasBounds(query: ShipmentQuery, by: IndexOrder): boolean {
  return boundsOf(query, by).some((bound) => bound !== null);
}

/** Ids with all the exact values of the query, in chunks; one may come twice. */
async function* exactIds(
  redis: Redis,
  { companyId, trackingNumber, exact }: ShipmentQuery,
  channelId: number,
): AsyncGenerator<number[]> {
  const keys = companyKeys(companyPartition(companyId));
  const sets = Object.entries(exact).map(([field, value]) =>
    keys.exact(channelId, field as ExactField, value),
  );
  if (trackingNumber !== null) {
    // As many as there are couriers.
    const ids = await redis.hVals(keys.numbers(channelId, trackingNumber));
    yield await inAllSets(redis, sets, ids);
    return;
  }
  const sizes = await pipelined(redis, sets, (pipeline, key) => pipeline.sCard(key));
  const smallest = sizes.indexOf(Math.min(...sizes));
  const key = sets[smallest] ?? "";
  const others = sets.filter((_, at) => at !== smallest);
  if ((sizes[smallest] ?? 0) <= SMALL_SET) {
    yield await inAllSets(redis, others, await redis.sMembers(key));
    return;
  }
  for await (const ids of redis.sScanIterator(key, { COUNT: CHUNK })) {
    yield await inAllSets(redis, others, ids);
  }
}

async function inAllSets(
  redis: Redis,
  sets: readonly string[],
  ids: readonly string[],
): Promise<number[]> {
  let left = [...ids];
  for (const key of sets) {
    if (left.length === 0) return [];
    const present = await redis.smIsMember(key, left);
    left = left.filter((_, at) => present[at]);
  }
  return left.map(Number);
}

/** Which of the hits of a channel lie within the query's bounds in the given indices. */
async function matchingIds(
  redis: Redis,
  query: ShipmentQuery,
  channelId: number,
  filters: readonly ("ship" | "upd")[],
  hits: readonly Hit[],
): Promise<Set<number>> {
  const keys = companyKeys(companyPartition(query.companyId));
  let left = [...hits];
  for (const by of filters) {
    const [from, to] = boundsOf(query, by);
    const scores = await scoresOf(redis, keys.index(channelId, by), left);
    left = left.filter((_, at) => {
      const score = scores[at] ?? null;
      return score !== null && (from === null || score >= from) && (to === null || score <= to);
    });
  }
  return new Set(left.map(({ id }) => id));
}

/** The hits of a channel that are in one of the query's statuses. */
async function withStatus(
  redis: Redis,
  { companyId, statuses }: ShipmentQuery,
  channelId: number,
  hits: readonly Hit[],
): Promise<readonly Hit[]> {
  if (statuses === null) return hits;
  const keys = companyKeys(companyPartition(companyId));
  const chosen = new Set<number>();
  for (const status of statuses) {
    const scores = await scoresOf(redis, keys.index(channelId, "id", status), hits);
    for (const score of scores) if (score !== null) chosen.add(score);
  }
  return hits.filter(({ id }) => chosen.has(id));
}

/** The hits with their values in the index that sorts; it is not asked where the id is all that counts. */
async function rescored(
  redis: Redis,
  { companyId, channelIds, order }: ShipmentQuery,
  hits: readonly Hit[],
): Promise<Hit[]> {
  if (order.by === "id") return [...hits];
  const keys = companyKeys(companyPartition(companyId));
  const scored: Hit[] = [];
  for (let from = 0; from < hits.length; from += CHUNK) {
    const chunk = hits.slice(from, from + CHUNK);
    const perChannel = await Promise.all(
      channelIds.map((channelId) => scoresOf(redis, keys.index(channelId, order.by), chunk)),
    );
    chunk.forEach((hit, at) => {
      const score = perChannel.map((scores) => scores[at] ?? null).find((one) => one !== null);
      scored.push({ id: hit.id, score: score ?? hit.score });
    });
  }
  return scored;
}

async function scoresOf(
  redis: Redis,
  key: string,
  hits: readonly Hit[],
): Promise<(number | null)[]> {
  if (hits.length === 0) return [];
  const members = hits.map(({ id }) => indexMember(id));
  const chunks = Array.from({ length: Math.ceil(members.length / CHUNK) }, (_, at) =>
    members.slice(at * CHUNK, (at + 1) * CHUNK),
  );
  const scores = await pipelined<string[], (number | null)[]>(redis, chunks, (pipeline, chunk) =>
    pipeline.zmScore(key, chunk),
  );
  return scores.flat();
}

function unique(hits: readonly Hit[]): Hit[] {
  return [...new Map(hits.map((hit) => [hit.id, hit])).values()];
}
