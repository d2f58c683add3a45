/**
 * A worker of one queue: takes work under a lease, renews the lease while the work lasts, puts back what is to be tried
 * again. What a killed worker had in hand is taken by another once its lease has ended.
 */
import type { Log } from "#core/log.ts";
import type { Redis } from "#core/redis/client.ts";
import type { WorkName } from "#core/redis/keys.ts";
import type { Live } from "#core/redis/live.ts";
import { renewWork, settleWork, type Taken, takeWork } from "#core/redis/work-queue.ts";

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
  readonly work: (taken: Taken) => Promise<WorkVerdict>;
}

export interface Worker {
  /** Finishes what is in hand. */
  readonly stop: () => Promise<void>;
}

const LEASE_MS = 6_000;
const RENEW_EVERY_MS = 2_000;
const IDLE_WAIT_MS = 50;
const TROUBLE_WAIT_MS = 500;
/** Work that failed by a fault of our own, or because the store was away. */
const FAULT_RETRY_MS = 2_000;

export function startWorker(options: WorkerOptions): Worker {
  const { redis, log, live, queue, atOnce, work } = options;
  const inHand = new Set<Promise<void>>();
  let stopping = false;

  async function loop(): Promise<void> {
    while (!stopping) {
      try {
        await live.refresh();
        const taken = await takeWork(redis, queue, atOnce - inHand.size, LEASE_MS, live.now());
        for (const one of taken) begin(one);
        if (inHand.size >= atOnce) await Promise.race(inHand);
        else if (taken.length === 0) await Promise.race([Bun.sleep(IDLE_WAIT_MS), ...inHand]);
      } catch (error) {
        log.warn({ queue, reason: (error as Error).message }, "worker waits");
        await Bun.sleep(TROUBLE_WAIT_MS);
      }
    }
    await Promise.all(inHand);
  }

  function begin(taken: Taken): void {
    const doing = perform(taken).finally(() => inHand.delete(doing));
    inHand.add(doing);
  }

  async function perform(taken: Taken): Promise<void> {
    const renewal = setInterval(() => {
      renewWork(redis, queue, taken, LEASE_MS).catch(() => {});
    }, RENEW_EVERY_MS);
    try {
      await settleWork(redis, queue, taken, await verdictOf(taken));
    } catch (error) {
      // The lease ends by itself and the work is taken again.
      log.warn({ queue, reason: (error as Error).message }, "work is left to its lease");
    } finally {
      clearInterval(renewal);
    }
  }

  async function verdictOf(taken: Taken): Promise<WorkVerdict> {
    try {
      return await work(taken);
    } catch (error) {
      log.error({ queue, work: taken.id, err: error }, "work failed and is tried again");
      return live.now() + FAULT_RETRY_MS;
    }
  }

  const running = loop();
  return {
    async stop() {
      stopping = true;
      await running;
    },
  };
}
