/**
 * Partitions whose store is unavailable: nothing in them is leased or begun. After an outage in which leases may have
 * expired, a partition rests, so that all processes record their results and renew deliveries in progress before new leases
 * are granted.
 */
import type { Log } from "#core/platform/process/log.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { webhookKeys } from "#core/platform/redis/keys.ts";
import { followOutage } from "#core/platform/redis/outage.ts";
import { probeWrites } from "#core/platform/redis/probe.ts";

/** During an outage, interval between checks whether the store accepts writes again. */
const PROBE_EVERY_MS = 250;

export interface PartitionOutages {
  /** @param begunAtMs when the step that has failed was begun: the store may have hung for long before it failed */
  readonly failed: (partitions: Iterable<number>, error: unknown, begunAtMs: number) => void;
  readonly isOut: (partition: number) => boolean;
  readonly isAnyOut: () => boolean;
  /** Whether it is neither out nor resting. */
  readonly mayLease: (partition: number) => boolean;
  /**
   * Checks the partitions that are out, when it is time.
   * @returns those that are back and resting
   */
  readonly probe: () => Promise<readonly number[]>;
}

/** @param bridgedMs an outage so short that no lease expires in it */
export function followPartitions(
  redis: Redis,
  log: Log,
  { bridgedMs, recoveryMs }: { readonly bridgedMs: number; readonly recoveryMs: number },
): PartitionOutages {
  const outage = followOutage(log, "webhooks");
  const outSinceMs = new Map<number, number>();
  const restsUntilMs = new Map<number, number>();
  let probeAtMs = 0;

  function failed(partitions: Iterable<number>, error: unknown, begunAtMs: number): void {
    outage.failed(error, begunAtMs);
    if (outSinceMs.size === 0) probeAtMs = performance.now() + PROBE_EVERY_MS;
    for (const one of partitions) {
      outSinceMs.set(one, Math.min(outSinceMs.get(one) ?? begunAtMs, begunAtMs));
    }
  }

  /** @returns whether it is resting */
  function cameBack(partition: number): boolean {
    const nowMs = performance.now();
    const tookMs = nowMs - (outSinceMs.get(partition) ?? nowMs);
    outSinceMs.delete(partition);
    if (tookMs <= bridgedMs) return false;
    restsUntilMs.set(partition, nowMs + recoveryMs);
    return true;
  }

  return {
    failed,
    isOut: (partition) => outSinceMs.has(partition),
    isAnyOut: () => outSinceMs.size > 0,
    mayLease: (partition) =>
      !outSinceMs.has(partition) && (restsUntilMs.get(partition) ?? 0) <= performance.now(),
    async probe() {
      if (outSinceMs.size === 0 || performance.now() < probeAtMs) return [];
      const partitions = [...outSinceMs.keys()];
      const probes = await Promise.allSettled(
        partitions.map((one) => probeWrites(redis, [webhookKeys(one).leases])),
      );
      probeAtMs = performance.now() + PROBE_EVERY_MS;
      const refused = probes.find((one) => one.status === "rejected");
      if (refused) outage.failed(refused.reason);
      const back = partitions.filter((_, at) => probes[at]?.status === "fulfilled");
      const resting = back.filter(cameBack);
      if (outSinceMs.size === 0) outage.succeeded();
      return resting;
    },
  };
}
