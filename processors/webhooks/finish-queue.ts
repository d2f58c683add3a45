/** Results on their way to the store: under load what gathers within a few milliseconds goes with one call a partition. */
import type { Log } from "#core/log.ts";
import type { Redis } from "#core/redis/client.ts";
import { type Finished, finishDeliveries } from "#core/redis/deliveries.ts";
import type { Live } from "#core/redis/live.ts";

const TROUBLE_WAIT_MS = 200;
/** After a batch of so many the next one gathers: few large calls cost least, and one fsync each. */
const LOADED_BATCH = 16;
const GATHER_MS = 10;

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

  async function work(): Promise<void> {
    flushing = true;
    let lastBatch = 0;
    while (waiting.length > 0) {
      if (lastBatch >= LOADED_BATCH) await Bun.sleep(GATHER_MS);
      const batch = waiting;
      lastBatch = batch.length;
      waiting = [];
      if (await isRecorded(batch)) for (const { done } of batch) done();
      else {
        waiting = [...batch, ...waiting];
        await Bun.sleep(TROUBLE_WAIT_MS);
      }
    }
    flushing = false;
  }

  /** True as well for what is given up. */
  async function isRecorded(batch: readonly Waiting[]): Promise<boolean> {
    const results = batch.map(({ result }) => result);
    try {
      await finishDeliveries(redis, results, live.now());
      return true;
    } catch (error) {
      log.warn({ reason: (error as Error).message }, "webhook results wait for the store");
      return givingUp;
    }
  }

  return {
    record(result, done) {
      waiting.push({ result, done });
      if (!flushing) void work();
    },
    giveUp() {
      givingUp = true;
    },
  };
}
