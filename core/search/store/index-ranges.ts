/**
 * Score ranges of the search indices, read as one ordered list. No command returns more than a chunk.
 *
 * Members are ids of fixed width, so within one score a sorted set stands in the order of ids: a range of one ship date
 * is a list by id as well.
 */
import type { Redis } from "#core/platform/redis/client.ts";
import type { IndexOrder } from "#core/platform/redis/keys.ts";

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

/** The deepest end of a page that is read from sorted sets: elements one command returns, about 0.3 ms of Redis. */
export const CHUNK = 1_000;
/** Elements read from the heads of all ranges for one page. */
const HEADS_LIMIT = 40_000;
/** Commands sent together. */
const COMMANDS_TOGETHER = 200;

/** Smallest first. */
export function compareHits({ by, descending }: SortOrder) {
  const sign = descending ? -1 : 1;
  return (one: Hit, other: Hit): number =>
    sign * ((by === "id" ? 0 : one.score - other.score) || one.id - other.id);
}

/** Whether `readPage` answers a page that ends there. */
export function isNearHead(ranges: readonly IndexRange[], end: number): boolean {
  return end <= CHUNK && end * ranges.length <= HEADS_LIMIT;
}

/**
 * One page near the start of ranges that share no member, each of them in the sort order. It is read with its counts in one
 * transaction: a reader of several channels never sees a change without the earlier ones (reconciliation procedure of
 * document 1).
 */
export async function readPage(
  redis: Redis,
  ranges: readonly IndexRange[],
  order: SortOrder,
  offset: number,
  limit: number,
): Promise<HitPage> {
  const end = offset + limit;
  const { total, hits } = await readHeads(redis, ranges, order, end);
  return { total, hits: hits.sort(compareHits(order)).slice(offset, end) };
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
