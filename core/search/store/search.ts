/**
 * Search of shipments (document 1, `GET /v2/shipments`) in the company's partition.
 *
 * | question                                                     | answered from                                            |
 * |--------------------------------------------------------------|----------------------------------------------------------|
 * | exact values that few shipments have                         | those shipments themselves (`searchFew`)                 |
 * | one index filters and sorts, and the page is near its head   | the sorted sets of that index (`index-ranges.ts`)        |
 * | anything else                                                | the rows that this process keeps (`search-columns.ts`)   |
 */

import { firstWhere } from "#core/platform/process/first-where.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import {
  companyKeys,
  companyPartition,
  type ExactField,
  type IndexOrder,
  numberKeys,
} from "#core/platform/redis/keys.ts";
import { shipDay } from "#core/shipments/rules/shipment.ts";
import {
  type Block,
  type ColumnRow,
  DAY_SHIFT,
  MANY_OF_ONE_VALUE,
} from "#core/shipments/store/columns.ts";
import { readHotShipments } from "#core/shipments/store/shipments.ts";
import { STATUSES } from "#core/statuses/rules/status.ts";
import {
  compareHits,
  type Hit,
  type HitPage,
  type IndexRange,
  isNearHead,
  pipelined,
  readPage,
} from "./index-ranges.ts";
import type { Filter } from "./match-rows.ts";
import { type ExactMatches, filterOf, searchColumns } from "./search-columns.ts";
import {
  type Cut,
  type CutPage,
  possiblePositions,
  selectAfter,
  selectPage,
} from "./select-page.ts";
import type { ShipmentQuery } from "./shipment-query.ts";

/** Limit on shipments that are read by id, within 1 ms of Redis time; above it the rows of all are kept in memory. */
const FEW = 250;

/** How a question is answered, from rows or from hits. */
interface Answer<T> {
  readonly ofRows: (blocks: readonly Block[], filter: Filter) => T;
  /** @param hits all of them, in order */
  readonly ofHits: (hits: readonly Hit[]) => T;
}

export function searchShipments(redis: Redis, query: ShipmentQuery): Promise<HitPage> {
  const { order, offset, limit } = query;
  const page: Answer<HitPage> = {
    ofRows: (blocks, filter) => selectPage(blocks, filter, order, offset, limit),
    ofHits: (hits) => ({ total: hits.length, hits: hits.slice(offset, offset + limit) }),
  };
  if (asksForValues(query)) return searchExact(redis, query, page);
  const ranges = rangesOf(query, order.by);
  return isOfOneIndex(query) && isNearHead(ranges, offset + limit)
    ? readPage(redis, ranges, order, offset, limit)
    : searchColumns(redis, query, null, page.ofRows);
}

/** A page that begins at the cut; the query's offset is ignored. */
export function searchAfter(redis: Redis, query: ShipmentQuery, cut: Cut): Promise<CutPage> {
  const { order, limit } = query;
  const page: Answer<CutPage> = {
    ofRows: (blocks, filter) => selectAfter(blocks, filter, order, cut, limit),
    ofHits(hits) {
      const [from, to] = possiblePositions(cut, hits.length);
      const isAfter = (at: number) => !cut.isBefore(hits[from + at] as Hit, from + at);
      const first = from + firstWhere(to - from, isAfter);
      return { total: hits.length, first, hits: hits.slice(first, first + limit) };
    },
  };
  return asksForValues(query)
    ? searchExact(redis, query, page)
    : searchColumns(redis, query, null, page.ofRows);
}

function asksForValues({ trackingNumber, exact, ids }: ShipmentQuery): boolean {
  return ids !== undefined || trackingNumber !== null || Object.keys(exact).length > 0;
}

/** Whether the index that sorts is the only one that filters. */
function isOfOneIndex(query: ShipmentQuery): boolean {
  const { order, statuses, shipFrom, shipTo, updatedFrom, updatedTo, idTo } = query;
  return (
    statuses === null &&
    updatedTo === undefined &&
    idTo === undefined &&
    (order.by === "ship" || (shipFrom === null && shipTo === null)) &&
    (order.by === "upd" || updatedFrom === null)
  );
}

/** The ranges of one index that hold every match of its own filter. */
function rangesOf(query: ShipmentQuery, by: IndexOrder): IndexRange[] {
  const keys = companyKeys(companyPartition(query.companyId));
  const [from, to] = boundsOf(query, by);
  return query.channelIds.map((channelId) => ({ key: keys.index(channelId, by), from, to }));
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

async function searchExact<T>(redis: Redis, query: ShipmentQuery, answer: Answer<T>): Promise<T> {
  const matching = new Map<number, ExactMatches>();
  for (const channelId of query.channelIds) {
    matching.set(channelId, await exactMatches(redis, query, channelId));
  }
  const ids = [...matching].flatMap(([channelId, one]) =>
    one.kind === "ids" ? one.ids.map((id) => ({ channelId, id })) : [],
  );
  const isFew = ids.length <= FEW && [...matching.values()].every(({ kind }) => kind === "ids");
  return isFew
    ? answer.ofHits(await searchFew(redis, query, ids))
    : searchColumns(redis, query, matching, answer.ofRows);
}

async function exactMatches(
  redis: Redis,
  { companyId, trackingNumber, exact, ids: given }: ShipmentQuery,
  channelId: number,
): Promise<ExactMatches> {
  if (given) return { kind: "ids", ids: given.get(channelId) ?? [] };
  const keys = companyKeys(companyPartition(companyId));
  const fields = Object.entries(exact) as [ExactField, string][];
  const sets = fields.map(([field, value]) => keys.exact(channelId, field, value));
  if (trackingNumber !== null) {
    const named = await numbered(
      redis,
      numberKeys(keys, channelId, trackingNumber),
      trackingNumber,
    );
    return { kind: "ids", ids: await inAllSets(redis, sets, named) };
  }
  const sizes = await pipelined(redis, sets, (pipeline, key) => pipeline.sCard(key));
  const smallest = sizes.indexOf(Math.min(...sizes));
  if ((sizes[smallest] ?? 0) >= MANY_OF_ONE_VALUE) {
    const bitmaps = fields.map(([field, value]) => keys.exactBits(channelId, field, value));
    return { kind: "bitmaps", keys: bitmaps };
  }
  const ids = await redis.sMembers(sets[smallest] ?? "");
  const others = sets.filter((_, at) => at !== smallest);
  return { kind: "ids", ids: await inAllSets(redis, others, ids) };
}

/**
 * Document 1: the search is exact, while the store has a number by its matching form. As many shipments as there are couriers, or
 * a few more in a store of 0.1.0.
 */
async function numbered(
  redis: Redis,
  keys: readonly string[],
  trackingNumber: string,
): Promise<string[]> {
  const ids = new Set((await Promise.all(keys.map((key) => redis.hVals(key)))).flat());
  const hot = await readHotShipments(redis, [...ids].map(Number));
  return [...ids].filter((id) => {
    const one = hot.get(Number(id));
    return (
      one?.meta.trackingNumber === trackingNumber || one?.state.aliases.includes(trackingNumber)
    );
  });
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

interface ShipmentRef {
  readonly channelId: number;
  readonly id: number;
}

/** The candidates whose own rows pass every other filter, in order. */
async function searchFew(
  redis: Redis,
  query: ShipmentQuery,
  candidates: readonly ShipmentRef[],
): Promise<Hit[]> {
  const { order } = query;
  const { id: ids, ship, upd, statuses } = filterOf(query, null);
  const rows = await readRows(redis, candidates);
  return rows
    .filter(({ shipped }) => shipped >= ship.least && shipped <= ship.most)
    .filter(({ id, updated }) => id <= ids.most && updated >= upd.least && updated <= upd.most)
    .filter(({ status }) => ((statuses >>> status) & 1) === 1)
    .map(({ id, shipped, updated }): Hit => {
      return { id, score: { id, ship: shipped - DAY_SHIFT, upd: updated }[order.by] };
    })
    .sort(compareHits(order));
}

/** As they are in their channel's rows; a shipment and its row are always changed in one step. */
async function readRows(redis: Redis, candidates: readonly ShipmentRef[]): Promise<ColumnRow[]> {
  const hot = await readHotShipments(
    redis,
    candidates.map(({ id }) => id),
  );
  return [...hot.values()].map(({ id, updated, meta, state }) => {
    const shipped = shipDay(meta.shipDate) + DAY_SHIFT;
    return { id, updated, shipped, status: STATUSES.indexOf(state.pair.status) };
  });
}
