/**
 * Follows one part of the product through an outage of a store it needs: how long it waits before the next attempt, which
 * partitions it leaves alone, and what it logs: one line when the outage begins, one every 30 seconds, and one when it is over.
 */
import type { Log } from "#core/platform/process/log.ts";
import {
  countFailuresFromZero,
  internalErrors,
  storeFailures,
} from "#core/platform/process/metrics.ts";
import { startTicking, type WakeableTicking } from "#core/platform/process/tick.ts";
import type { Redis } from "./client.ts";
import { probeWrites } from "./probe.ts";
import { describeFailure, reasonOf, storeOf } from "./store-unavailable.ts";

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 2_000;
const LOG_EVERY_MS = 30_000;
/** During an outage, interval between checks whether a partition accepts writes again. */
export const PROBE_EVERY_MS = 250;

export interface Outage {
  /**
   * A step has failed.
   * @param begunAtMs when it was begun: a store that hangs before it fails has been unavailable since then
   * @returns how long to wait before the next one, milliseconds
   */
  readonly failed: (error: unknown, begunAtMs?: number) => number;
  /** A step has succeeded. @returns how long the outage took that it ends, milliseconds; 0 = there was none */
  readonly succeeded: () => number;
  readonly isOn: () => boolean;
}

/** Work at intervals that needs a store: the next run comes whether or not one fails, and the log says so once. */
export function startTickingThroughOutages(
  log: Log,
  part: string,
  tickMs: number,
  work: (isStopping: () => boolean) => Promise<void>,
): WakeableTicking {
  const outage = followOutage(log, part);
  return startTicking(
    tickMs,
    async (isStopping) => {
      await work(isStopping);
      outage.succeeded();
    },
    (error) => void outage.failed(error),
  );
}

/** @param part name of the waiting part, for the log and the metric: one of a few */
export function followOutage(log: Log, part: string): Outage {
  let sinceMs: number | null = null;
  let loggedAtMs = 0;
  let waitMs = FIRST_WAIT_MS;
  countFailuresFromZero(part);
  internalErrors.inc({ part }, 0);
  return {
    failed(error, begunAtMs) {
      const nowMs = performance.now();
      const isOwnFault = reasonOf(error) === null;
      if (isOwnFault) internalErrors.inc({ part });
      else storeFailures.inc({ part, store: storeOf(error) });
      if (sinceMs === null || nowMs >= loggedAtMs + LOG_EVERY_MS) {
        loggedAtMs = nowMs;
        if (isOwnFault) log.error({ part, err: error }, "an unexpected error; retrying");
        else log.warn({ part, reason: describeFailure(error) }, "waiting for a store");
      }
      sinceMs = Math.min(sinceMs ?? nowMs, begunAtMs ?? nowMs);
      const ownMs = waitMs;
      waitMs = Math.min(LONGEST_WAIT_MS, waitMs * 2);
      return ownMs;
    },
    succeeded() {
      if (sinceMs === null) return 0;
      const tookMs = Math.max(1, Math.round(performance.now() - sinceMs));
      sinceMs = null;
      waitMs = FIRST_WAIT_MS;
      log.info({ part, waitedMs: tookMs }, "the store is available again");
      return tookMs;
    },
    isOn: () => sinceMs !== null,
  };
}

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

export interface LeaseTimes {
  readonly leaseMs: number;
  readonly renewEveryMs: number;
  /** Longer than the client takes to reconnect, 2.2 s, and than a result waits for its next attempt. */
  readonly recoveryMs: number;
}

/**
 * For leases in partitions. In a partition whose store is unavailable nothing is leased or begun. After an outage in which leases
 * may have expired it rests, so that all processes record their results and renew what is in progress before new leases are
 * granted.
 * @param part as for `followOutage` @param keyOf a key of a partition
 */
export function followPartitions(
  redis: Redis,
  log: Log,
  part: string,
  keyOf: (partition: number) => string,
  { leaseMs, renewEveryMs, recoveryMs }: LeaseTimes,
): PartitionOutages {
  const outage = followOutage(log, part);
  // A lease renewed just before so short an outage has not expired when all processes have reconnected.
  const bridgedMs = leaseMs - renewEveryMs - recoveryMs;
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
        partitions.map((one) => probeWrites(redis, [keyOf(one)])),
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
