/** The two kinds of store that every flow and fault suite runs on. */
import { companyTag } from "#core/platform/redis/keys.ts";
import { startTestCluster } from "./redis-cluster.ts";

export const STORES = ["one Redis server", "a six-node Redis Cluster"] as const;
export type StoreKind = (typeof STORES)[number];

const MASTERS = 3;

export interface Store {
  /** What makes the product use it. */
  readonly env: Readonly<Record<string, string>>;
  /** SIGKILL to one master after the other; its replica has taken over and the killed one follows when it is done. */
  readonly killMaster: () => Promise<void>;
  /** SIGSTOP to a master, whose replica takes over. @returns wakes it up */
  readonly freezeMaster: () => Promise<() => void>;
  /** See `TestCluster`. */
  readonly moveSlots: (way: "away" | "back") => Promise<number>;
  /** See `TestCluster`. */
  readonly state: () => Promise<string>;
  readonly stop: () => Promise<void>;
}

/**
 * What makes a new store on one server have so many partitions of each family, so that suites together cover 1, 4 and 16. A cluster
 * has its own 16.
 */
export function onServer(kind: StoreKind, partitions: 4 | 16): Readonly<Record<string, string>> {
  return kind === "one Redis server" ? { STORE_PARTITIONS: String(partitions) } : {};
}

/** @returns null for one server, which is started by whoever uses it */
export async function openStore(kind: StoreKind): Promise<Store | null> {
  if (kind === "one Redis server") return null;
  const cluster = await startTestCluster();
  let kills = 0;
  return {
    env: { REDIS_CLUSTER_URLS: cluster.urls, REDIS_WAIT_REPLICAS: "1" },
    async killMaster() {
      kills += 1;
      await cluster.killMaster(kills % MASTERS);
    },
    freezeMaster: () => cluster.freezeMaster(companyTag(0)),
    moveSlots: cluster.moveSlots,
    state: cluster.state,
    stop: cluster.stop,
  };
}
