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
import { companyTag, type WorkName, workKeys } from "#core/platform/redis/keys.ts";
import {
  followOutage,
  followPartitions,
  type Outage,
  type PartitionOutages,
  PROBE_EVERY_MS,
} from "#core/platform/redis/outage.ts";
import { partitionsOf } from "#core/platform/redis/partitions.ts";
import { describeFailure, isStoreUnavailable } from "#core/platform/redis/store-unavailable.ts";
import { openWaker, type Waker } from "#core/platform/redis/wake.ts";
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

/** What the steps of a worker share. */
interface Running extends WorkerOptions {
  readonly inHand: Set<Promise<void>>;
  readonly waker: Waker;
  readonly outages: PartitionOutages;
  /** Of the pieces in hand, while any of them waits for a store. */
  readonly outageInHand: Outage;
  /** How often each piece has failed by an error of ours. */
  readonly faults: Map<string, number>;
  /** Pieces in hand that wait for a store. */
  waiting: number;
  stopping: boolean;
}

export function startWorker(options: WorkerOptions): Worker {
  const { redis, log, queue } = options;
  const leasesOf = (partition: number) => workKeys(companyTag(partition), queue).leases;
  const worker: Running = {
    ...options,
    inHand: new Set(),
    waker: openWaker(redis, queue),
    outages: followPartitions(redis, log, queue, leasesOf, TIMES),
    outageInHand: followOutage(log, `${queue} in hand`),
    faults: new Map(),
    waiting: 0,
    stopping: false,
  };
  const running = takeUntilStopped(worker);
  return {
    async stop() {
      worker.stopping = true;
      worker.waker.wake();
      await running;
      worker.waker.close();
    },
  };
}

async function takeUntilStopped(worker: Running): Promise<void> {
  const { waker, outages, inHand } = worker;
  while (!worker.stopping) {
    waker.reset();
    const taken = await take(worker);
    if (taken > 0 && capacity(worker) > 0) continue;
    const idleMs = outages.isAnyOut() ? PROBE_EVERY_MS : untilTickMs(IDLE_WAIT_MS);
    await Promise.race([waker.wait(idleMs), ...inHand]);
  }
  await Promise.all(inHand);
}

const capacity = ({ atOnce, inHand, waiting }: Running) => atOnce - (inHand.size - waiting);

/** @returns how many pieces were taken */
async function take(worker: Running): Promise<number> {
  const { redis, live, queue, inHand, outages } = worker;
  const begunAtMs = performance.now();
  try {
    await outages.probe();
    const partitions = partitionsOf("k").filter(outages.mayLease);
    const wanted = Math.min(capacity(worker), WAITING_MOST - worker.waiting);
    if (partitions.length === 0 || wanted <= 0) return 0;
    await live.refresh();
    const terms = { wanted, leaseMs: LEASE_MS, nowMs: live.now(), partitions };
    const { taken, failures } = await takeWork(redis, queue, terms);
    for (const [partition, error] of failures) outages.failed([partition], error, begunAtMs);
    for (const one of taken) {
      const doing = perform(worker, one).finally(() => inHand.delete(doing));
      inHand.add(doing);
    }
    return taken.length;
  } catch (error) {
    outages.failed(partitionsOf("k"), error, begunAtMs);
    return 0;
  }
}

/** Does a piece of work and records its verdict; it never rejects. */
async function perform(worker: Running, taken: Taken): Promise<void> {
  const { redis, log, queue, outages } = worker;
  const renewal = setInterval(() => {
    const begunAtMs = performance.now();
    renewWork(redis, queue, taken, LEASE_MS).catch((error) =>
      outages.failed([taken.partition], error, begunAtMs),
    );
  }, TIMES.renewEveryMs);
  try {
    await settleWork(redis, queue, taken, await verdictOf(worker, taken));
  } catch (error) {
    // The lease ends by itself and the work is taken again.
    log.warn({ queue, reason: describeFailure(error) }, "work is released when its lease expires");
  } finally {
    clearInterval(renewal);
  }
}

async function verdictOf(worker: Running, taken: Taken): Promise<WorkVerdict> {
  const { redis, log, live, queue, work, faults } = worker;
  const name = `${taken.partition} ${taken.id}`;
  try {
    const verdict = await work(taken, {
      isStopping: () => worker.stopping,
      untilAvailable: (step) => untilAvailable(worker, step),
    });
    faults.delete(name);
    return verdict;
  } catch (error) {
    if (isStoreUnavailable(error, redis)) return live.now() + FAULT_RETRY_MS;
    internalErrors.inc({ part: queue });
    log.error({ queue, work: taken.id, err: error }, "work failed; retrying");
    return live.now() + nextFaultMs(faults, name);
  }
}

async function untilAvailable<T>(worker: Running, step: () => Promise<T>): Promise<T> {
  const { redis, waker, outageInHand } = worker;
  let waits = false;
  try {
    for (;;) {
      try {
        return await step();
      } catch (error) {
        if (worker.stopping || !isStoreUnavailable(error, redis)) throw error;
        outageInHand.failed(error);
      }
      if (!waits) {
        waits = true;
        worker.waiting += 1;
        waker.wake();
      }
      await Bun.sleep(PROBE_EVERY_MS);
    }
  } finally {
    if (waits) worker.waiting -= 1;
    if (waits && worker.waiting === 0) outageInHand.succeeded();
  }
}

/** How long a piece of work waits after an internal error, by how often it has failed so far. */
function nextFaultMs(faults: Map<string, number>, name: string): number {
  const before = faults.get(name) ?? 0;
  if (faults.size < FAULTY_KNOWN || before > 0) faults.set(name, before + 1);
  return Math.min(LONGEST_FAULT_RETRY_MS, FAULT_RETRY_MS * 2 ** before);
}
