/** Any combination of filters, in any order, answered from the rows that this process keeps (`read-columns.ts`). */
import type { Redis } from "#core/platform/redis/client.ts";
import {
  ANY_STATUS,
  type Block,
  type Bounds,
  DAY_SHIFT,
  ROWS_PER_BLOCK,
  statusBits,
} from "#core/shipments/store/columns.ts";
import { type Filter, firstRow } from "./match-rows.ts";
import { type Bitmaps, withColumns } from "./read-columns.ts";
import type { ShipmentQuery } from "./shipment-query.ts";

/** Which shipments of a channel have all the exact values: their ids, or the bitmaps that all of them stand in. */
export type ExactMatches =
  | { readonly kind: "ids"; readonly ids: readonly number[] }
  | { readonly kind: "bitmaps"; readonly keys: readonly string[] };

/**
 * @param exact by channel, for all of them; null = no exact value is asked for
 * @param answer must read the blocks synchronously: they change with the next reading
 */
export function searchColumns<T>(
  redis: Redis,
  query: ShipmentQuery,
  exact: ReadonlyMap<number, ExactMatches> | null,
  answer: (blocks: readonly Block[], filter: Filter) => T,
): Promise<T> {
  const { companyId, channelIds } = query;
  const keys = [...(exact?.values() ?? [])].flatMap((one) =>
    one.kind === "bitmaps" ? one.keys : [],
  );
  return withColumns(redis, companyId, channelIds, keys, (blocks, bitmaps) => {
    const bits = exact && exactBits(exact, blocks, keys, bitmaps);
    return answer(blocks, filterOf(query, bits));
  });
}

const ANY: Bounds = { least: 0, most: Number.MAX_SAFE_INTEGER };

export function filterOf(query: ShipmentQuery, exact: Filter["exact"]): Filter {
  const { shipFrom, shipTo, updatedFrom, updatedTo = ANY.most, statuses, idTo = ANY.most } = query;
  return {
    id: { ...ANY, most: idTo },
    ship: {
      least: shipFrom === null ? ANY.least : shipFrom + DAY_SHIFT,
      most: shipTo === null ? ANY.most : shipTo + DAY_SHIFT,
    },
    // A shipment that was never updated stands there with 0.
    upd: { least: updatedFrom === null ? ANY.least : Math.max(1, updatedFrom), most: updatedTo },
    statuses: statuses === null ? ANY_STATUS : statusBits(statuses),
    exact,
  };
}

function exactBits(
  exact: ReadonlyMap<number, ExactMatches>,
  blocks: readonly Block[],
  keys: readonly string[],
  bitmaps: Bitmaps,
): Map<number, Uint8Array> {
  const read = new Map(keys.map((key, at) => [key, bitmaps[at] ?? NONE]));
  const blocksOf = Map.groupBy(blocks, ({ channelId }) => channelId);
  return new Map(
    [...exact].map(([channelId, one]) => [
      channelId,
      one.kind === "ids"
        ? bitsOf(one.ids, blocksOf.get(channelId) ?? [])
        : allOf(one.keys.map((key) => read.get(key) ?? NONE)),
    ]),
  );
}

const NONE = new Uint8Array(0);

function allOf([first = NONE, ...others]: readonly Uint8Array[]): Uint8Array {
  if (others.length === 0) return first;
  return first.map((byte, at) => others.reduce((left, other) => left & (other[at] ?? 0), byte));
}

/** Ids in ascending order meet the rows in theirs. */
function bitsOf(ids: readonly number[], blocks: readonly Block[]): Uint8Array {
  const bits = new Uint8Array((blocks.length * ROWS_PER_BLOCK) / 8);
  const ascending = [...ids].sort((one, other) => one - other);
  let next = 0;
  for (const block of blocks) {
    const { first } = block;
    const last = block.ids[block.rows - 1] ?? 0;
    for (; next < ascending.length && (ascending[next] as number) <= last; next += 1) {
      const row = rowOf(block, ascending[next] as number);
      if (row !== null)
        bits[(first + row) >>> 3] = (bits[(first + row) >>> 3] ?? 0) | (128 >>> (row & 7));
    }
  }
  return bits;
}

function rowOf(block: Block, id: number): number | null {
  const row = firstRow(block, id);
  return row < block.rows && block.ids[row] === id ? row : null;
}
