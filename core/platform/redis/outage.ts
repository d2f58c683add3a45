/**
 * Follows one part of the product through an outage of a store it needs: how long it waits before the next attempt, and
 * what it logs: one line when the outage begins, one every 30 seconds, and one when it is over.
 */
import type { Log } from "#core/platform/process/log.ts";
import {
  countFailuresFromZero,
  internalErrors,
  storeFailures,
} from "#core/platform/process/metrics.ts";
import { startTicking, type WakeableTicking } from "#core/platform/process/tick.ts";
import type { Redis } from "./client.ts";
import { describeFailure, isStoreUnavailable, reasonOf, storeOf } from "./store-unavailable.ts";

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 2_000;
const LOG_EVERY_MS = 30_000;

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

/**
 * Repeats a step while the store is unavailable, until `isStopping` at most.
 * @throws any error that has another reason
 */
export async function untilAvailable<T>(
  redis: Redis,
  outage: Outage,
  isStopping: () => boolean,
  step: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      const result = await step();
      outage.succeeded();
      return result;
    } catch (error) {
      if (isStopping() || !isStoreUnavailable(error, redis)) throw error;
      outage.failed(error);
      await Bun.sleep(FIRST_WAIT_MS);
    }
  }
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
