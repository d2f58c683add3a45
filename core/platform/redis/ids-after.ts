/**
 * Shipments of a sorted set in the order of their ids, page by page. Scores are ids in one set and ranks in another, and become
 * ranks while a set is read (`number-rows.lua`): only the order of the members can be relied on.
 */
import type { Redis } from "./client.ts";

export interface Position {
  /** The last shipment that was read; 0 = none. */
  readonly shipmentId: number;
  /** Where the next one is expected. Members that leave or come back before it do not matter. */
  readonly place: number;
}

/**
 * @param key members are ids, and stand in the order of their ids
 * @returns at most `count` ids; fewer = there are no more
 */
export async function idsAfter(
  redis: Redis,
  key: string,
  { shipmentId, place }: Position,
  count: number,
): Promise<{ readonly ids: readonly number[]; readonly place: number }> {
  for (let expected = place; ; expected = await placeAfter(redis, key, shipmentId)) {
    // With the one before, in one command: it shows that none was left out.
    const from = Math.max(0, expected - 1);
    const members = (await redis.zRange(key, from, expected + count - 1)).map(Number);
    const [before] = members;
    const isLeftOut = from > 0 && (before === undefined || before > shipmentId);
    const first = members.findIndex((id) => id > shipmentId);
    const isTooEarly = first === -1 && members.length === expected - from + count;
    if (isLeftOut || isTooEarly) continue;
    const ids = first === -1 ? [] : members.slice(first, first + count);
    return { ids, place: from + (first === -1 ? members.length : first + ids.length) };
  }
}

/** By halving: the place of the first shipment with a higher id. */
async function placeAfter(redis: Redis, key: string, shipmentId: number): Promise<number> {
  let [low, high] = [0, await redis.zCard(key)];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const [member] = await redis.zRange(key, middle, middle);
    if (member !== undefined && Number(member) <= shipmentId) low = middle + 1;
    else high = middle;
  }
  return low;
}
