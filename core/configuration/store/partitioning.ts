/**
 * How many partitions a store has, and the stride of its ids: chosen at the first start on it and stored beside the version of its
 * layout. A store of an earlier version has 16 of each family, and keeps them.
 */
import { isCluster, mastersOf, type Redis } from "#core/platform/redis/client.ts";
import { LAYOUT_KEY } from "#core/platform/redis/keys.ts";
import {
  FAMILIES,
  FIRST_PARTITIONING,
  newPartitioning,
  PARTITIONS_MOST,
  type Partitioning,
  usePartitioning,
} from "#core/platform/redis/partitions.ts";
import { LayoutRefused } from "./layout-refused.ts";

const FIELD = "partitions";
/** Enough that masters which are added later have some to take over, and that loads are even within a tenth. */
const PER_MASTER = 4;

/**
 * The partitions of a store that has its layout; an empty store gets those that are wanted.
 * @param wanted null = one on one server; on a cluster four for each master, rounded up to a power of two
 * @returns whether the store has others than those that are wanted
 */
export async function claimPartitioning(redis: Redis, wanted: number | null): Promise<boolean> {
  const own = encode(newPartitioning(wanted ?? partitionsFor(redis)));
  await redis.hSetNX(LAYOUT_KEY, FIELD, own);
  const { e, t, k } = await loadPartitioning(redis);
  return wanted !== null && [e, t, k].some((count) => count !== wanted);
}

/** @returns what the store says, in force from now on; that of earlier versions where it says nothing */
export async function loadPartitioning(redis: Redis): Promise<Partitioning> {
  const text = await redis.hGet(LAYOUT_KEY, FIELD);
  const partitioning = text === null ? FIRST_PARTITIONING : decode(text);
  usePartitioning(partitioning);
  return partitioning;
}

/** A step of a migration: an earlier version has written the store. */
export async function keepFirstPartitioning(redis: Redis): Promise<null> {
  await redis.hSetNX(LAYOUT_KEY, FIELD, encode(FIRST_PARTITIONING));
  return null;
}

function partitionsFor(redis: Redis): number {
  if (!isCluster(redis)) return 1;
  const wanted = PER_MASTER * mastersOf(redis).length;
  return Math.min(PARTITIONS_MOST, 2 ** Math.ceil(Math.log2(wanted)));
}

/** Each family has a list, which later numbers of its partitions can be added to. */
function encode({ e, t, k, stride }: Partitioning): string {
  return JSON.stringify({ e: [e], t: [t], k: [k], stride });
}

/** @throws {LayoutRefused} for a store whose partitions have been added to */
function decode(text: string): Partitioning {
  const { stride, ...lists } = JSON.parse(text);
  if (FAMILIES.some((family) => lists[family]?.length !== 1)) {
    throw new LayoutRefused(
      "The store has partitions that this version of Waybill does not know: start the newer version.",
    );
  }
  return { e: lists.e[0], t: lists.t[0], k: lists.k[0], stride };
}
