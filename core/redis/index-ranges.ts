/**
 * Score ranges of the search indices, read as one ordered list. No command returns more than a chunk.
 *
 * Members are ids of fixed width, so within one score a sorted set stands in the order of ids: a range of one ship date
 * is a list by id as well.
 */
import type { Redis } from "./client.ts";
import type { IndexOrder } from "./keys.ts";

/** Inclusive bounds; null = open. */
export interface IndexRange {
  readonly key: string;
  readonly from: number | null;
  readonly to: number | null;
}

/** `by` is the index order that the hits are sorted by; ties by id, in the same direction. */
export interface SortOrder {
  readonly by: IndexOrder;
  readonly descending: boolean;
}

export interface Hit {
  readonly id: number;
  /** Value in the index that was read. */
  readonly score: number;
}

export interface HitPage {
  readonly total: number;
  readonly hits: readonly Hit[];
}

/** Elements one command returns: some 0.3 ms of Redis. */
export const CHUNK = 1_000;
/** Commands sent together. */
const COMMANDS_TOGETHER = 200;
/** Elements read from the heads of all ranges before positions in them are looked for instead. */
const HEADS_LIMIT = 40_000;
/** Ranges among which a deep position is looked for. */
const SELECT_RANGES_LIMIT = 32;

/** Smallest first. */
export function compareHits({ by, descending }: SortOrder) {
  const sign = descending ? -1 : 1;
  return (one: Hit, other: Hit): number =>
    sign * ((by === "id" ? 0 : one.score - other.score) || one.id - other.id);
}

/** Whether `readPage` finds a page that ends there in few steps. */
export function isNear(ranges: readonly IndexRange[], end: number): boolean {
  return ranges.length <= SELECT_RANGES_LIMIT || isOfHeads(ranges, end);
}

function isOfHeads(ranges: readonly IndexRange[], end: number): boolean {
  return end <= CHUNK && end * ranges.length <= HEADS_LIMIT;
}

/**
 * One page over ranges that share no member, each of them in the sort order.
 * A page near the start is read with its counts in one transaction: a reader of several channels never sees a change
 * without the earlier ones (reconciliation procedure of document 1).
 */
export async function readPage(
  redis: Redis,
  ranges: readonly IndexRange[],
  order: SortOrder,
  offset: number,
  limit: number,
): Promise<HitPage> {
  const head = offset + limit;
  if (isOfHeads(ranges, head)) {
    const { total, hits } = await readHeads(redis, ranges, order, head);
    return { total, hits: hits.sort(compareHits(order)).slice(offset, head) };
  }
  const counts = await countRanges(redis, ranges);
  const total = sum(counts);
  if (offset >= total) return { total, hits: [] };
  return { total, hits: await readDeep(redis, ranges, counts, order, offset, limit) };
}

async function readHeads(
  redis: Redis,
  ranges: readonly IndexRange[],
  { by, descending }: SortOrder,
  count: number,
): Promise<{ total: number; hits: Hit[] }> {
  const transaction = redis.multi();
  for (const range of ranges) {
    const [min, max] = bounds(range);
    const [start, stop] = descending ? [max, min] : [min, max];
    transaction.zCount(range.key, min, max);
    transaction.zRangeWithScores(range.key, start, stop, {
      BY: "SCORE",
      REV: descending,
      LIMIT: { offset: 0, count },
    });
  }
  // Only the order of changes asks for one moment; elsewhere other clients are served in between.
  const sent = by === "upd" ? transaction.exec() : transaction.execAsPipeline();
  const replies = (await sent) as unknown as (number | ScoredMember[])[];
  const counts = replies.filter((reply) => typeof reply === "number");
  const hits = replies
    .filter((reply) => typeof reply !== "number")
    .flatMap((list) => list.map(hitOf));
  return { total: sum(counts), hits };
}

async function countRanges(redis: Redis, ranges: readonly IndexRange[]): Promise<number[]> {
  return pipelined(redis, ranges, (pipeline, range) =>
    pipeline.zCount(range.key, ...bounds(range)),
  );
}

/** The page at a deep position: finds by ranks how much of each range lies before it. */
async function readDeep(
  redis: Redis,
  ranges: readonly IndexRange[],
  counts: readonly number[],
  order: SortOrder,
  offset: number,
  limit: number,
): Promise<Hit[]> {
  const bases = await countBefore(redis, ranges, order.descending);
  const lists = ranges.map(({ key }, at) => ({
    key,
    base: bases[at] ?? 0,
    count: counts[at] ?? 0,
    skipped: 0,
  }));
  await skip(redis, lists, order, offset);
  const open = lists.filter(({ skipped, count }) => skipped < count);
  const pages = await pipelined<RankedList, ScoredMember[]>(redis, open, (pipeline, list) => {
    const from = list.base + list.skipped;
    const to = list.base + Math.min(list.skipped + limit, list.count) - 1;
    return pipeline.zRangeWithScores(list.key, from, to, { REV: order.descending });
  });
  return pages.flat().map(hitOf).sort(compareHits(order)).slice(0, limit);
}

interface RankedList {
  readonly key: string;
  /** Rank of the first element. */
  readonly base: number;
  readonly count: number;
  /** Elements that lie before the position looked for. */
  skipped: number;
}

/**
 * Skips `offset` elements of the merged order. Each round looks one equal step ahead in every list: the smallest element
 * found there has fewer than the remaining number before it, so its list can take the step.
 */
async function skip(
  redis: Redis,
  lists: readonly RankedList[],
  order: SortOrder,
  offset: number,
): Promise<void> {
  const compare = compareHits(order);
  let remaining = offset;
  while (remaining > 0) {
    const open = lists.filter(({ skipped, count }) => skipped < count);
    if (open.length === 0) return;
    const step = Math.max(1, Math.floor(remaining / open.length));
    const steps = open.map(({ skipped, count }) => Math.min(step, count - skipped));
    const probes = await pipelined<RankedList, ScoredMember[]>(
      redis,
      open,
      (pipeline, list, at) => {
        const rank = list.base + list.skipped + (steps[at] ?? 1) - 1;
        return pipeline.zRangeWithScores(list.key, rank, rank, { REV: order.descending });
      },
    );
    const smallest = probes
      .flatMap(([member], at) => (member ? [{ at, hit: hitOf(member) }] : []))
      .sort((one, other) => compare(one.hit, other.hit))[0];
    const list = smallest && open[smallest.at];
    if (!list) return;
    const taken = steps[smallest.at] ?? 1;
    list.skipped += taken;
    remaining -= taken;
  }
}

/** Elements of the sorted sets that stand before each range. */
function countBefore(
  redis: Redis,
  ranges: readonly IndexRange[],
  descending: boolean,
): Promise<number[]> {
  return pipelined(redis, ranges, (pipeline, { key, from, to }) => {
    if (descending) return pipeline.zCount(key, to === null ? "(+inf" : `(${to}`, "+inf");
    return pipeline.zCount(key, "-inf", from === null ? "(-inf" : `(${from}`);
  });
}

type Pipeline = ReturnType<Redis["multi"]>;

/** One command per item, written together in bounded groups; other clients are served in between. */
export async function pipelined<T, Reply = number>(
  redis: Redis,
  items: readonly T[],
  add: (pipeline: Pipeline, item: T, at: number) => unknown,
): Promise<Reply[]> {
  const replies: Reply[] = [];
  for (let from = 0; from < items.length; from += COMMANDS_TOGETHER) {
    const pipeline = redis.multi();
    items.slice(from, from + COMMANDS_TOGETHER).forEach((item, at) => {
      add(pipeline, item, from + at);
    });
    replies.push(...((await pipeline.execAsPipeline()) as unknown as Reply[]));
  }
  return replies;
}

interface ScoredMember {
  readonly value: string;
  readonly score: number;
}

function hitOf({ value, score }: ScoredMember): Hit {
  return { id: Number(value), score };
}

function bounds({ from, to }: IndexRange): [string | number, string | number] {
  return [from ?? "-inf", to ?? "+inf"];
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
