/**
 * What the requests of a port need of the store. A part of it that is unavailable is a part of the service that is: a port can
 * serve while it has, of each family of partitions that its requests need, at least one.
 */
import { limit } from "#core/platform/schema/limit.ts";
import { isCluster, type Redis } from "./client.ts";
import { changeLogs, eventLogs, parkedCountsKey } from "./keys.ts";
import { partitionsOf } from "./partitions.ts";
import { probeWrites } from "./probe.ts";

/** How long the partition that was there last may take; then all of its family are asked. */
const FIRST_ASKED_MS = limit(
  500,
  "wait in `/readyz` for the partition that is asked first",
  "all are asked",
);

export interface StoreNeeds {
  /** A key of each partition of a family, one of which must be there. */
  readonly families: ReadonlyArray<() => readonly string[]>;
  /** Whether that partition must accept writes, which replicas confirm where that is asked for; otherwise it must be readable. */
  readonly writes: boolean;
}

const references = () => partitionsOf("t").map(parkedCountsKey);

export const STORE_NEEDS = {
  /** References, and the log of their events. */
  ingest: { families: [references, eventLogs], writes: true },
  /** A request is taken from a budget in its company's partition. */
  api: { families: [changeLogs], writes: true },
  /** Operators can read what there is, whatever cannot be written. */
  panel: { families: [changeLogs], writes: false },
  processors: { families: [changeLogs], writes: true },
  /** They read, and acknowledge what ClickHouse has: that goes on in a full store. */
  analytics: { families: [changeLogs], writes: false },
  metrics: { families: [changeLogs], writes: false },
} as const satisfies Readonly<Record<string, StoreNeeds>>;

/**
 * @returns looks whether they are met, in about one small command each while they are; it writes nothing
 * @throws (the look) the error that a request would get
 */
export function watchNeeds(redis: Redis, needs: StoreNeeds): () => Promise<void> {
  const { families, writes } = needs;
  const ask = async (key: string): Promise<void> => {
    if (writes) await probeWrites(redis, [key]);
    else await redis.exists(key);
  };
  const looks = families.map((keys) => anyOf(keys(), ask));
  return async () => {
    await Promise.all(looks.map((look) => look()));
  };
}

/** Asks the one that was there last, and the others only if it is not. */
function anyOf(keys: readonly string[], ask: (key: string) => Promise<void>): () => Promise<void> {
  let [last = ""] = keys;
  const answering = async (key: string): Promise<string> => {
    await ask(key);
    return key;
  };
  return async () => {
    if (await isMetInTime(ask(last))) return;
    last = await Promise.any(keys.map(answering));
  };
}

/** False also for an answer that has not come yet. */
async function isMetInTime(asked: Promise<void>): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => late.resolve(false), FIRST_ASKED_MS);
  const isMet = asked.then(
    () => true,
    () => false,
  );
  return Promise.race([isMet, late.promise]).finally(() => clearTimeout(timer));
}

/** Known without a command; a cluster may be in reach in part. */
export function isOutOfReach(redis: Redis): boolean {
  return !isCluster(redis) && !redis.isReady;
}
