/**
 * Deliveries that this process has just queued, passed to its own send loop: it need not look for their endpoints, and knows their
 * shipments before it reads the deliveries. Only a hint: a look finds what is missing here, and what others have queued.
 */
import type { Redis } from "#core/platform/redis/client.ts";
import { limit } from "#core/platform/schema/limit.ts";

export interface FreshDelivery {
  readonly partition: number;
  readonly endpointId: string;
  readonly deliveryId: string;
  readonly shipmentId: number;
}

/** What was passed on since it was last taken. */
export interface Fresh {
  /** By partition. */
  readonly endpoints: ReadonlyMap<number, ReadonlySet<string>>;
  /** By delivery. */
  readonly shipments: ReadonlyMap<string, number>;
}

export interface FreshDeliveries {
  /** They are forgotten then. */
  readonly take: () => Fresh;
  readonly close: () => void;
}

/** While the send loop is busy it does not need them. */
const FRESH_LIMIT = limit(
  200,
  "deliveries just queued that are passed to the send loop",
  "it looks for the others",
);

interface Following {
  endpoints: Map<number, Set<string>>;
  shipments: Map<string, number>;
  readonly onFresh: () => void;
}

const followers = new WeakMap<Redis, Following>();

/** One send loop a client. @param onFresh called when there are some */
export function followFreshDeliveries(redis: Redis, onFresh: () => void): FreshDeliveries {
  const following: Following = { endpoints: new Map(), shipments: new Map(), onFresh };
  followers.set(redis, following);
  return {
    take() {
      const { endpoints, shipments } = following;
      if (shipments.size > 0) [following.endpoints, following.shipments] = [new Map(), new Map()];
      return { endpoints, shipments };
    },
    close() {
      if (followers.get(redis) === following) followers.delete(redis);
    },
  };
}

/** Called once they are queued. */
export function passFreshDeliveries(redis: Redis, fresh: readonly FreshDelivery[]): void {
  const following = followers.get(redis);
  if (!following) return;
  const { endpoints, shipments, onFresh } = following;
  for (const { partition, endpointId, deliveryId, shipmentId } of fresh) {
    if (shipments.size >= FRESH_LIMIT) break;
    const own = endpoints.get(partition) ?? new Set();
    endpoints.set(partition, own.add(endpointId));
    shipments.set(deliveryId, shipmentId);
  }
  onFresh();
}
