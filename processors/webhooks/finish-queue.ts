/**
 * Results on their way to the store: under load what gathers within a few milliseconds goes with one call a partition. While
 * the store is unavailable they wait here, so that what a receiver has taken is not sent again.
 */
import type { Log } from "#core/log.ts";
import { internalErrors } from "#core/metrics.ts";
import type { Redis } from "#core/redis/client.ts";
import { type Finished, finishDeliveries } from "#core/redis/deliveries.ts";
import type { Live } from "#core/redis/live.ts";
import { followOutage } from "#core/redis/outage.ts";
import { isStoreUnavailable } from "#core/redis/store-unavailable.ts";

/** Shorter than the pause of all deliverers after an outage (`deliver.ts`): results are recorded before leases are handed out. */
const TROUBLE_WAIT_MS = 200;
/** After a batch of so many the next one gathers: few large calls cost least, and one fsync each. */
const LOADED_BATCH = 16;
const GATHER_MS = 10;
/** A result that an error of ours keeps from being recorded. */
const FAULT_WAIT_MS = 60_000;

export interface FinishQueue {
  /** `done` once the result is recorded, or given up: its lease ends then and the delivery is sent again. */
  readonly record: (result: Finished, done: () => void) => void;
  /** Results that the store does not take any more are given up from here on. */
  readonly giveUp: () => void;
}

interface Waiting {
  readonly result: Finished;
  readonly done: () => void;
}

/** Bounded by the deliveries under way: each waits for its own result. */
export function createFinishQueue(redis: Redis, live: Live, log: Log): FinishQueue {
  let waiting: Waiting[] = [];
  let flushing = false;
  let givingUp = false;
  const outage = followOutage(log, "webhook results");
  /** Results that an error of ours has kept back, by their timers. */
  const faulty = new Map<ReturnType<typeof setTimeout>, Waiting>();

  async function work(): Promise<void> {
    flushing = true;
    let lastBatch = 0;
    while (waiting.length > 0) {
      if (lastBatch >= LOADED_BATCH) await Bun.sleep(GATHER_MS);
      const batch = waiting;
      lastBatch = batch.length;
      waiting = [];
      await settle(batch);
    }
    flushing = false;
  }

  async function settle(batch: readonly Waiting[]): Promise<void> {
    try {
      const results = batch.map(({ result }) => result);
      await finishDeliveries(redis, results, live.now());
      outage.succeeded();
      for (const { done } of batch) done();
    } catch (error) {
      if (givingUp) for (const { done } of batch) done();
      else if (isStoreUnavailable(error, redis)) {
        outage.failed(error);
        waiting = [...batch, ...waiting];
        await Bun.sleep(TROUBLE_WAIT_MS);
      } else await keepFaulty(batch, error);
    }
  }

  /** One that cannot be recorded holds up no other, and keeps its lease: it is not sent again. */
  async function keepFaulty(batch: readonly Waiting[], error: unknown): Promise<void> {
    const [only] = batch;
    if (batch.length > 1 || !only) {
      for (const one of batch) await settle([one]);
      return;
    }
    internalErrors.inc({ part: "webhook results" });
    log.error({ err: error, delivery: only.result.of.deliveryId }, "a webhook result waits");
    const timer = setTimeout(() => {
      faulty.delete(timer);
      add(only);
    }, FAULT_WAIT_MS);
    faulty.set(timer, only);
  }

  function add(one: Waiting): void {
    waiting.push(one);
    if (!flushing) void work();
  }

  return {
    record: (result, done) => add({ result, done }),
    giveUp() {
      givingUp = true;
      for (const [timer, { done }] of faulty) {
        clearTimeout(timer);
        done();
      }
      faulty.clear();
    },
  };
}
