/** Deals the free slots of a deliverer out to the partitions, most to those that had more to give a moment ago. */

import { PARTITIONS } from "#core/platform/redis/keys.ts";
import type { Share } from "#core/webhooks/store/deliveries/leases.ts";

/** A busy partition counts as much as all quiet ones together. */
const BUSY_WEIGHT = PARTITIONS;

type PlaceShare = Omit<Share, "wantedSilent">;

/**
 * The shares sum up to the free slots exactly; a partition without a share is left out of this round.
 * @param turn moves on with every round, so that the odd slots go round
 * @param most partitions that have a share: few large ones are cheaper than many small ones
 */
export function shareOut(
  free: number,
  freeFailing: number,
  busy: ReadonlySet<number>,
  turn: number,
  most: number = PARTITIONS,
): PlaceShare[] {
  // All have their turn one after the other; where only some have, the next ones follow on them.
  const offset = most === PARTITIONS ? turn : turn * most;
  const order = Array.from({ length: PARTITIONS }, (_, n) => (n + offset) % PARTITIONS);
  order.sort((one, other) => Number(busy.has(other)) - Number(busy.has(one)));
  order.splice(most);
  const weights = order.map((partition) => (busy.has(partition) ? BUSY_WEIGHT : 1));
  const wanted = deal(free, weights);
  const wantedFailing = deal(freeFailing, weights);
  return order.flatMap((partition, at) => {
    const own = wanted[at] ?? 0;
    return own === 0 ? [] : [{ partition, wanted: own, wantedFailing: wantedFailing[at] ?? 0 }];
  });
}

/**
 * Adds what is wanted for silent endpoints, who take no slots: the same for each of their partitions.
 * @param turn moves on with every round, so that the odd ones go round
 */
export function addSilent(
  shares: readonly PlaceShare[],
  wantedSilent: number,
  partitions: ReadonlySet<number>,
  turn: number,
): Share[] {
  const order = [...partitions].sort((one, other) => one - other);
  const offset = turn % Math.max(1, order.length);
  const turned = [...order.slice(offset), ...order.slice(0, offset)];
  const dealt = deal(
    wantedSilent,
    turned.map(() => 1),
  );
  const silent = new Map(turned.map((partition, at) => [partition, dealt[at] ?? 0]));
  const others = turned.filter(
    (own) => silent.get(own) !== 0 && shares.every(({ partition }) => partition !== own),
  );
  return [
    ...shares,
    ...others.map((partition) => ({ partition, wanted: 0, wantedFailing: 0 })),
  ].map((share) => ({ ...share, wantedSilent: silent.get(share.partition) ?? 0 }));
}

function deal(total: number, weights: readonly number[]): number[] {
  const sum = weights.reduce((all, weight) => all + weight, 0);
  const shares = weights.map((weight) => Math.floor((Math.max(0, total) * weight) / sum));
  let left = Math.max(0, total) - shares.reduce((all, share) => all + share, 0);
  return shares.map((share) => (left-- > 0 ? share + 1 : share));
}
