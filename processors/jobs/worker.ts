/**
 * A worker of one queue: takes work under a lease, renews the lease while the work lasts, puts back what is to be tried
 * again. What a killed worker had in hand is taken by another once its lease has ended.
 *
 * | what happens                | what follows                                                                          |
 * |-----------------------------|---------------------------------------------------------------------------------------|
 * | the store is unavailable    | nothing is taken; what is in hand is recorded when it is back, and only after a pause  |
 * |                             | of all workers is work handed out again, since leases may have ended meanwhile         |
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
import { followOutage } from "#core/platform/redis/outage.ts";
import { probeWrites } from "#core/platform/redis/probe.ts";
import { describeFailure, isStoreUnavailable } from "#core/platform/redis/store-unavailable.ts";
import { openWaker } from "#core/platform/redis/wake.ts";

/** When the work is due again, service clock, milliseconds; null = it is done. */
export type WorkVerdict = number | null;

export interface WorkerOptions {
  readonly redis: Redis;
  readonly log: Log;
  readonly live: Live;
  readonly queue: WorkName;
  /** Pieces of work in hand at once. */
  readonly atOnce: number;
  /** Doing the same work twice must change nothing. */
  readonly work: (taken: Taken, isStopping: () => boolean) => Promise<WorkVerdict>;
}

export interface Worker {
  /** Finishes what is in hand. */
  readonly stop: () => Promise<void>;
}

const LEASE_MS = 6_000;
const RENEW_EVERY_MS = 2_000;
/** New work is announced; work that becomes due again is found within this time. */
const IDLE_WAIT_MS = 2_000;
/** During an outage, interval between checks whether the store accepts writes again. */
const PROBE_EVERY_MS = 250;
/**
 * Pause after an outage: longer than the client takes to reconnect, 2.2 s, and than an outcome waits for its next attempt.
 */
const RECOVERY_MS = 3_000;
/** An outage so short that a lease renewed before it has not expired when all workers have reconnected. */
const BRIDGED_MS = LEASE_MS - RENEW_EVERY_MS - RECOVERY_MS;
/** Wait after a failure because of an unavailable store or an internal error; doubled each time. */
const FAULT_RETRY_MS = 2_000;
const LONGEST_FAULT_RETRY_MS = 3_600_000;
/** Pieces of work whose failures are counted; beyond that, one waits as if it had failed for the first time. */
const FAULTY_KNOWN = 1_000;

const leaseKeys = (name: WorkName) =>
  Array.from({ length: PARTITIONS }, (_, n) => workKeys(companyTag(n), name).leases);

/** One of each partition. */
const LEASE_KEYS: Readonly<Record<WorkName, readonly string[]>> = {
  imports: leaseKeys("imports"),
  "import-callbacks": leaseKeys("import-callbacks"),
  messages: leaseKeys("messages"),
  "test-parcels": leaseKeys("test-parcels"),
};

export function startWorker(options: WorkerOptions): Worker {
  const { redis, log, live, queue, atOnce, work } = options;
  const inHand = new Set<Promise<void>>();
  let stopping = false;
  const waker = openWaker(redis, queue);
  const outage = followOutage(log, queue);
  const faults = faultWaits();

  async function loop(): Promise<void> {
    while (!stopping) {
      const begunAtMs = performance.now();
      try {
        if (outage.isOn()) await recover();
        await live.refresh();
        waker.reset();
        const taken = await takeWork(redis, queue, atOnce - inHand.size, LEASE_MS, live.now());
        for (const one of taken) begin(one);
        if (inHand.size >= atOnce) await Promise.race(inHand);
        else if (taken.length === 0)
          await Promise.race([waker.wait(untilTickMs(IDLE_WAIT_MS)), ...inHand]);
      } catch (error) {
        outage.failed(error, begunAtMs);
      }
    }
    await Promise.all(inHand);
  }

  /** Resolves when the store accepts writes again and leases may be granted. */
  async function recover(): Promise<void> {
    while (!stopping) {
      await Bun.sleep(PROBE_EVERY_MS);
      try {
        await probeWrites(redis, LEASE_KEYS[queue]);
        break;
      } catch (error) {
        outage.failed(error);
      }
    }
    if (!stopping && outage.succeeded() > BRIDGED_MS) await Bun.sleep(RECOVERY_MS);
  }

  function begin(taken: Taken): void {
    const doing = perform(taken).finally(() => inHand.delete(doing));
    inHand.add(doing);
  }

  async function perform(taken: Taken): Promise<void> {
    const renewal = setInterval(() => {
      const begunAtMs = performance.now();
      renewWork(redis, queue, taken, LEASE_MS).catch((error) => outage.failed(error, begunAtMs));
    }, RENEW_EVERY_MS);
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
  }

  async function verdictOf(taken: Taken): Promise<WorkVerdict> {
    const name = `${taken.partition} ${taken.id}`;
    try {
      const verdict = await work(taken, () => stopping);
      faults.forget(name);
      return verdict;
    } catch (error) {
      if (isStoreUnavailable(error, redis)) return live.now() + FAULT_RETRY_MS;
      internalErrors.inc({ part: queue });
      log.error({ queue, work: taken.id, err: error }, "work failed; retrying");
      return live.now() + faults.nextMs(name);
    }
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
