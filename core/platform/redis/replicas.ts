/** Whether the replicas are there that writes wait for (`REDIS_WAIT_REPLICAS`). */
import type { Log } from "#core/platform/process/log.ts";
import { limit } from "#core/platform/schema/limit.ts";
import {
  mastersOf,
  placeOf,
  type Redis,
  replicaTermsOf,
  StoreUnreachable,
  unavailableMasters,
} from "./client.ts";
import { type ReplicaTerms, replicasOnline } from "./replica-waits.ts";

/** How long a start waits for replicas that are still connecting, as for a server that does not answer. */
const REPLICAS_LIMIT_MS = limit(
  15_000,
  "time that a start waits for replicas that are still connecting",
  "it goes on with a warning; with `REDIS_WAIT_STRICT` it is refused, with the variable and the numbers",
);
const LOOK_EVERY_MS = 100;

/**
 * Waits until each master has as many replicas in step as writes wait for. Where they do not come in time, a start goes on without
 * them, unless the terms are strict.
 * @throws {StoreUnreachable}
 */
export async function awaitReplicas(
  redis: Redis,
  { wanted, isStrict }: ReplicaTerms,
  log: Log,
  limitMs = REPLICAS_LIMIT_MS,
): Promise<void> {
  if (wanted === 0) return;
  const untilMs = performance.now() + limitMs;
  for (;;) {
    const counts = mastersOf(redis).map((master) => replicasOnline(master).catch(() => 0));
    const least = Math.min(...(await Promise.all(counts)));
    if (least >= wanted) return;
    if (performance.now() >= untilMs) {
      const found = `Redis has ${least} of the ${wanted} replicas that REDIS_WAIT_REPLICAS asks for, after ${limitMs / 1000} s`;
      if (isStrict) throw new StoreUnreachable(`${found}; REDIS_WAIT_STRICT refuses to start.`);
      log.warn(`${found}; writes go on without them`);
      return;
    }
    await Bun.sleep(LOOK_EVERY_MS);
  }
}

export interface Masters {
  /** Those that do not answer, as `host:port`. */
  readonly away: string[];
  /** Those in reach that have fewer replicas than writes wait for. */
  readonly replicasMissing: { node: string; replicas: number; wanted: number }[];
}

export async function readMasters(redis: Redis): Promise<Masters> {
  const { wanted } = replicaTermsOf(redis);
  const away = unavailableMasters(redis);
  const counting = mastersOf(redis).map(async (master) => {
    const node = placeOf(master);
    try {
      return { node, replicas: wanted === 0 ? 0 : await replicasOnline(master), wanted };
    } catch {
      // One that has just become a replica, or does not answer: other alarms tell that.
      return null;
    }
  });
  const known = (await Promise.all(counting)).filter((one) => one !== null);
  return { away, replicasMissing: known.filter((one) => one.replicas < one.wanted) };
}

/** How many replicas the masters in reach lack of those that writes wait for. */
export async function missingReplicas(redis: Redis): Promise<number> {
  if (replicaTermsOf(redis).wanted === 0) return 0;
  const { replicasMissing } = await readMasters(redis);
  return replicasMissing.reduce((sum, { replicas, wanted }) => sum + wanted - replicas, 0);
}
