/**
 * Search of shipments (document 1, `GET /v2/shipments`) over the sorted sets of the company's partition.
 *
 * | filters                                              | total           | page                                        |
 * |------------------------------------------------------|-----------------|---------------------------------------------|
 * | status, and a range of the index that sorts          | counts of ranges | head or rank of the ranges                 |
 * | an exact value of few shipments                      | the smallest set is read in chunks and checked                 |
 * | any other combination                                | the rows of the columns are scanned (`search-columns.ts`)      |
 */
import type { Redis } from "./client.ts";
import { MANY_OF_ONE_VALUE } from "./columns.ts";
import {
  CHUNK,
  compareHits,
  type Hit,
  type HitPage,
  type IndexRange,
  pipelined,
  readPage,
} from "./index-ranges.ts";
import {
  companyKeys,
  companyPartition,
  type ExactField,
  type IndexOrder,
  indexMember,
} from "./keys.ts";
import { type ExactMatches, searchColumns } from "./search-columns.ts";
import type { ShipmentQuery } from "./shipment-query.ts";

/** Members of a set read with one command. */
const SMALL_SET = CHUNK;

export function searchShipments(redis: Redis, query: ShipmentQuery): Promise<HitPage> {
  const { order, offset, limit } = query;
  const ship = query.shipFrom !== null || query.shipTo !== null;
  const updated = query.updatedFrom !== null;
  if (query.trackingNumber !== null) return sorted(readExact(redis, query), query);
  if (Object.keys(query.exact).length > 0) return searchExact(redis, query);
  if ((ship && order.by !== "ship") || (updated && order.by !== "upd")) {
    return searchColumns(redis, query);
  }
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

/** Values of few shipments are read from their sets; for values of many the rows are scanned. */
async function searchExact(redis: Redis, query: ShipmentQuery): Promise<HitPage> {
  const { companyId, channelIds, exact } = query;
  const keys = companyKeys(companyPartition(companyId));
  const fields = Object.entries(exact) as [ExactField, string][];
  const sets = channelIds.flatMap((id) =>
    fields.map(([field, value]) => keys.exact(id, field, value)),
  );
  const sizes = await pipelined(redis, sets, (pipeline, key) => pipeline.sCard(key));
  const isMany = channelIds.map((_, at) => {
    const own = sizes.slice(at * fields.length, (at + 1) * fields.length);
    return Math.min(...own) >= MANY_OF_ONE_VALUE;
  });
  if (!isMany.includes(true)) return sorted(readExact(redis, query), query);
  const matching = new Map<number, ExactMatches>();
  for (const [at, id] of channelIds.entries()) {
    if (isMany[at]) {
      const bitmaps = fields.map(([field, value]) => keys.exactBits(id, field, value));
      matching.set(id, { kind: "bitmaps", keys: bitmaps });
    } else {
      const ids = new Set<number>();
      for await (const chunk of exactIds(redis, query, id)) for (const one of chunk) ids.add(one);
      matching.set(id, { kind: "ids", ids });
    }
  }
  return searchColumns(redis, query, matching);
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
