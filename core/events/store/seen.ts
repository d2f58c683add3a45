/**
 * Memory of eventIds: exact, at least 183 days, 9 bytes an id while buckets stay integer sets.
 *
 * A 128-bit hash of (courier, eventId) chooses partition and bucket; 64 bits of it are the member. Generations of 92
 * days follow each other; the current one and the two before it are checked, so an id is known for at least 184 days, or 183
 * if clocks differ by a day (calendar quarters would give 181). There are enough buckets to keep each under
 * `set-max-intset-entries` (512 by default).
 */
import type { Redis } from "#core/platform/redis/client.ts";
import { digestOf } from "#core/platform/redis/digest.ts";
import { eventKeys, SYSTEM_KEY } from "#core/platform/redis/keys.ts";
import { partitionCount, partitionOfDigest } from "#core/platform/redis/partitions.ts";
import { limit } from "#core/platform/schema/limit.ts";

const DAY_MS = 86_400_000;
export const GENERATION_DAYS = 92;
/** Mean fill of a bucket; Poisson spread keeps practically all buckets under 512. */
const BUCKET_FILL = 350;
/**
 * The maximum difference between the clocks of two processes. For this long before a generation begins it is already
 * checked, since a process that is ahead may have claimed ids in it; for this long after it begins, buckets are still
 * created in the previous one, since a process that is behind may claim ids there.
 */
export const CLOCK_SKEW_MS = limit(
  DAY_MS,
  "difference between the clocks of two processes",
  "an eventId sent again at the turn of a generation may count twice",
);
/** A generation is checked until the end of the second one after it, by the slower clock. */
const GENERATION_TTL_DAYS = 3 * GENERATION_DAYS + CLOCK_SKEW_MS / DAY_MS;

export interface SeenBucket {
  readonly partition: number;
  readonly bucketBits: number;
  /** Signed 64-bit integer in decimal: what keeps the set an intset. */
  readonly member: string;
  /** Short text of the same 64 bits: the fact's identity within its shipment. */
  readonly factKey: string;
}

export function seenBucket(courier: string, eventId: string): SeenBucket {
  const digest = digestOf(`${courier}\0${eventId}`);
  return {
    partition: partitionOfDigest("e", digest),
    bucketBits: digest.readUInt32BE(1),
    member: digest.readBigInt64BE(8).toString(),
    factKey: digest.toString("base64url", 8, 16),
  };
}

/** The `factKey` alone. */
export function factKeyOf(courier: string, eventId: string): string {
  return digestOf(`${courier}\0${eventId}`).toString("base64url", 8, 16);
}

export interface Generation {
  readonly number: number;
  /** Buckets per partition, fixed when the generation begins. */
  readonly buckets: number;
}

/** The current generation first, then the next one if it is about to begin, then earlier ones that exist. */
export interface SeenLayout {
  readonly generations: readonly Generation[];
}

export function generationOf(nowMs: number): number {
  return Math.floor(nowMs / (GENERATION_DAYS * DAY_MS));
}

const layouts = new WeakMap<Redis, Map<string, SeenLayout>>();

/** The layout in force at `nowMs`; the first process to need a generation fixes its number of buckets. */
export async function seenLayout(
  redis: Redis,
  nowMs: number,
  eventsPerDay: number,
): Promise<SeenLayout> {
  const current = generationOf(nowMs);
  const begun = new Set([
    generationOf(nowMs - CLOCK_SKEW_MS),
    current,
    generationOf(nowMs + CLOCK_SKEW_MS),
  ]);
  const name = [...begun].join();
  const known = layouts.get(redis) ?? new Map<string, SeenLayout>();
  layouts.set(redis, known);
  const cached = known.get(name);
  if (cached) return cached;
  const expected = (eventsPerDay * GENERATION_DAYS) / partitionCount("e") / BUCKET_FILL;
  const field = (generation: number) => `seen:${generation}`;
  const buckets = String(Math.max(1, Math.ceil(expected)));
  for (const number of begun) await redis.hSetNX(SYSTEM_KEY, field(number), buckets);
  const looked = [...new Set([current, ...begun, current - 1, current - 2])];
  const counts = await redis.hmGet(SYSTEM_KEY, looked.map(field));
  const generations = looked.flatMap((number, at) => {
    const count = Number(counts[at] ?? 0);
    return count > 0 ? [{ number, buckets: count }] : [];
  });
  const layout = { generations };
  known.set(name, layout);
  return layout;
}

/** Bucket keys of an id, current generation first. */
export function bucketKeys(layout: SeenLayout, seen: SeenBucket): string[] {
  return bucketKeysOf(layout, seen.partition, [seen]);
}

/** The same for many ids of one partition, one after the other. */
export function bucketKeysOf(
  { generations }: SeenLayout,
  partition: number,
  ids: readonly SeenBucket[],
): string[] {
  const { seenPrefix } = eventKeys(partition);
  const prefixes = generations.map(({ number }) => seenPrefix(number));
  const keys: string[] = [];
  for (const { bucketBits } of ids) {
    generations.forEach(({ buckets }, at) => {
      keys.push(`${prefixes[at]}${bucketBits % buckets}`);
    });
  }
  return keys;
}

export const SEEN_TTL_SECONDS = GENERATION_TTL_DAYS * 86_400;
