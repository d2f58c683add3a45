/**
 * A worker of one queue: takes work under a lease, renews the lease while the work lasts, puts back what is to be tried
 * again. What a killed worker had in hand is taken by another once its lease has ended.
 *
 * | what happens                | what follows                                                                          |
 * |-----------------------------|---------------------------------------------------------------------------------------|
 * | a partition is unavailable  | nothing of it is taken; what is in hand is recorded when it is back, and only after a  |
 * |                             | rest of all workers is its work handed out again, since leases may have ended meanwhile |
 * | work waits for a store      | it gives its place to other work, up to `WAITING_MOST` pieces                          |
 * | an error of ours            | the work is tried again after 2, 4, 8 s and so on, an hour at most later, for ever     |
 */

import type { Live } from "#core/configuration/store/live.ts";
import {
  renewWork,
  settleWork,
  type Taken,
  takeWork,
} from "#core/merchants/store/jobs/work-queue.ts";
import type { Log } from "#core/platform/process/log.ts";
import { internalErrors } from "#core/platform/process/metrics.ts";
import { untilTickMs } from "#core/platform/process/tick.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { companyTag, PARTITIONS, type WorkName, workKeys } from "#core/platform/redis/keys.ts";
import { followOutage, followPartitions, PROBE_EVERY_MS } from "#core/platform/redis/outage.ts";
import { describeFailure, isStoreUnavailable } from "#core/platform/redis/store-unavailable.ts";
import { openWaker } from "#core/platform/redis/wake.ts";
import { limit } from "#core/platform/schema/limit.ts";

/** When the work is due again, service clock, milliseconds; null = it is done. */
export type WorkVerdict = number | null;

/** What a piece of work may ask of its worker. */
export interface Holding {
  readonly isStopping: () => boolean;
  /**
   * Repeats a step while a store is unavailable, until the worker stops at most; other work takes the place of this meanwhile.
   * @throws any error that has another reason
   */
  readonly untilAvailable: <T>(step: () => Promise<T>) => Promise<T>;
}

export interface WorkerOptions {
  readonly redis: Redis;
  readonly log: Log;
  readonly live: Live;
  readonly queue: WorkName;
  /** Pieces of work in hand at once that do not wait for a store. */
  readonly atOnce: number;
  /** Doing the same work twice must change nothing. */
  readonly work: (taken: Taken, holding: Holding) => Promise<WorkVerdict>;
}

export interface Worker {
  /** Finishes what is in hand. */
  readonly stop: () => Promise<void>;
}

const LEASE_MS = 6_000;
const TIMES = { leaseMs: LEASE_MS, renewEveryMs: 2_000, recoveryMs: 3_000 } as const;
/** Pieces of work of a queue in one process that wait for a store; at the limit nothing more is taken. */
export const WAITING_MOST = limit(
  100,
  "imports, callbacks, messages and test parcels in hand of a process that wait for a store, of each",
  "nothing more is taken until one has been recorded",
);
/** New work is announced; work that becomes due again is found within this time. */
const IDLE_WAIT_MS = 2_000;
/** Wait after a failure because of an unavailable store or an internal error; doubled each time. */
const FAULT_RETRY_MS = limit(
  2_000,
  "first wait after an internal error of an import or message",
  "retried; never counted as an attempt",
);
const LONGEST_FAULT_RETRY_MS = limit(
  3_600_000,
  "longest wait after an internal error of an import or message",
  "retried without end; webhooks follow their retry schedule",
);
/** Pieces of work whose failures are counted; beyond that, one waits as if it had failed for the first time. */
const FAULTY_KNOWN = 1_000;

const ALL_PARTITIONS = Array.from({ length: PARTITIONS }, (_, n) => n);

export function startWorker(options: WorkerOptions): Worker {
  const { redis, log, live, queue, atOnce } = options;
  const inHand = new Set<Promise<void>>();
  let stopping = false;
  const waker = openWaker(redis, queue);
  const leasesOf = (partition: number) => workKeys(companyTag(partition), queue).leases;
  const outages = followPartitions(redis, log, queue, leasesOf, TIMES);
  const waiting = followWaiting(options, () => stopping, waker.wake);
  const perform = performer(options, waiting.hold, outages.failed);

  /** @returns how many pieces were taken */
  async function take(): Promise<number> {
    const begunAtMs = performance.now();
    try {
      await outages.probe();
      const partitions = ALL_PARTITIONS.filter(outages.mayLease);
      const wanted = Math.min(capacity(), WAITING_MOST - waiting.count());
      if (partitions.length === 0 || wanted <= 0) return 0;
      await live.refresh();
      const terms = { wanted, leaseMs: LEASE_MS, nowMs: live.now(), partitions };
      const { taken, failures } = await takeWork(redis, queue, terms);
      for (const [partition, error] of failures) outages.failed([partition], error, begunAtMs);
      for (const one of taken) begin(one);
      return taken.length;
    } catch (error) {
      outages.failed(ALL_PARTITIONS, error, begunAtMs);
      return 0;
    }
  }

  const capacity = () => atOnce - (inHand.size - waiting.count());

  function begin(taken: Taken): void {
    const doing = perform(taken).finally(() => inHand.delete(doing));
    inHand.add(doing);
  }

  async function loop(): Promise<void> {
    while (!stopping) {
      waker.reset();
      const taken = await take();
      if (taken > 0 && capacity() > 0) continue;
      const idleMs = outages.isAnyOut() ? PROBE_EVERY_MS : untilTickMs(IDLE_WAIT_MS);
      await Promise.race([waker.wait(idleMs), ...inHand]);
    }
    await Promise.all(inHand);
  }

  const running = loop();
  return {
    async stop() {
      stopping = true;
      waker.wake();
      await running;
      waker.close();
    },
  };
}

/** Follows the pieces of work that wait for a store. */
function followWaiting(
  { redis, log, queue }: WorkerOptions,
  isStopping: () => boolean,
  onWaiting: () => void,
) {
  const outage = followOutage(log, `${queue} in hand`);
  let waiting = 0;

  async function untilAvailable<T>(step: () => Promise<T>): Promise<T> {
    let waits = false;
    try {
      for (;;) {
        try {
          return await step();
        } catch (error) {
          if (isStopping() || !isStoreUnavailable(error, redis)) throw error;
          outage.failed(error);
        }
        if (!waits) {
          waits = true;
          waiting += 1;
          onWaiting();
        }
        await Bun.sleep(PROBE_EVERY_MS);
      }
    } finally {
      if (waits) waiting -= 1;
      if (waits && waiting === 0) outage.succeeded();
    }
  }

  return { count: () => waiting, hold: { isStopping, untilAvailable } as Holding };
}

type Failed = (partitions: readonly number[], error: unknown, begunAtMs: number) => void;

/** @returns does a piece of work and records its verdict; it never rejects */
function performer(
  { redis, log, live, queue, work }: WorkerOptions,
  holding: Holding,
  failed: Failed,
): (taken: Taken) => Promise<void> {
  const faults = faultWaits();

  async function verdictOf(taken: Taken): Promise<WorkVerdict> {
    const name = `${taken.partition} ${taken.id}`;
    try {
      const verdict = await work(taken, holding);
      faults.forget(name);
      return verdict;
    } catch (error) {
      if (isStoreUnavailable(error, redis)) return live.now() + FAULT_RETRY_MS;
      internalErrors.inc({ part: queue });
      log.error({ queue, work: taken.id, err: error }, "work failed; retrying");
      return live.now() + faults.nextMs(name);
    }
  }

  return async (taken) => {
    const renewal = setInterval(() => {
      const begunAtMs = performance.now();
      renewWork(redis, queue, taken, LEASE_MS).catch((error) =>
        failed([taken.partition], error, begunAtMs),
      );
    }, TIMES.renewEveryMs);
    try {
      await settleWork(redis, queue, taken, await verdictOf(taken));
    } catch (error) {
      // The lease ends by itself and the work is taken again.
      log.warn(
        { queue, reason: describeFailure(error) },
        "work is released when its lease expires",
      );
    } finally {
      clearInterval(renewal);
    }
  };
}

/** How long a piece of work waits after internal errors, by how often it has failed so far. */
function faultWaits() {
  const faults = new Map<string, number>();
  return {
    nextMs(name: string): number {
      const before = faults.get(name) ?? 0;
      if (faults.size < FAULTY_KNOWN || before > 0) faults.set(name, before + 1);
      return Math.min(LONGEST_FAULT_RETRY_MS, FAULT_RETRY_MS * 2 ** before);
    },
    forget: (name: string) => void faults.delete(name),
  };
}
