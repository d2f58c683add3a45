/** Whether the replicas are there that writes wait for (`REDIS_WAIT_REPLICAS`). */
import type { Log } from "#core/log.ts";
import { mastersOf, type Redis, replicaTermsOf, StoreUnreachable } from "./client.ts";
import { type ReplicaTerms, replicasOnline } from "./replica-waits.ts";

/** How long a start waits for replicas that are still connecting, as for a server that does not answer. */
const REPLICAS_LIMIT_MS = 15_000;
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

/** How many replicas the masters in reach lack of those that writes wait for. */
export async function missingReplicas(redis: Redis): Promise<number> {
  const { wanted } = replicaTermsOf(redis);
  if (wanted === 0) return 0;
  const lacking = mastersOf(redis).map(async (master) => {
    // One that does not answer is missing itself, and other alarms tell that.
    const online = await replicasOnline(master).catch(() => wanted);
    return Math.max(0, wanted - online);
  });
  return (await Promise.all(lacking)).reduce((sum, one) => sum + one, 0);
}
