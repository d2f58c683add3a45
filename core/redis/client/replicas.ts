/** Whether the replicas are there that writes wait for (`REDIS_WAIT_REPLICAS`). */
import { mastersOf, type Redis, StoreUnreachable } from "./client.ts";

/** How long a start waits for replicas that are still connecting, as for a server that does not answer. */
const REPLICAS_LIMIT_MS = 15_000;
const LOOK_EVERY_MS = 100;

/**
 * Waits until each master has as many replicas in step as writes wait for.
 * @throws {StoreUnreachable}
 */
export async function awaitReplicas(
  redis: Redis,
  wanted: number,
  limitMs = REPLICAS_LIMIT_MS,
): Promise<void> {
  if (wanted === 0) return;
  const untilMs = performance.now() + limitMs;
  for (;;) {
    const least = Math.min(...(await Promise.all(mastersOf(redis).map(replicasOf))));
    if (least >= wanted) return;
    if (performance.now() >= untilMs) {
      throw new StoreUnreachable(
        `Redis has ${least} of the ${wanted} replicas that REDIS_WAIT_REPLICAS asks for, after ${limitMs / 1000} s.`,
      );
    }
    await Bun.sleep(LOOK_EVERY_MS);
  }
}

/** Those that have been sent everything that was there before they connected. */
async function replicasOf(master: Pick<Redis, "sendCommand">): Promise<number> {
  const info = String(await master.sendCommand(["INFO", "replication"]).catch(() => ""));
  return info.match(/^slave\d+:.*\bstate=online\b/gm)?.length ?? 0;
}
