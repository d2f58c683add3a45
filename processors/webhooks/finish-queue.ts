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
  /** Settles once the result is recorded, or given up: its lease ends then and the delivery is sent again. */
  readonly record: (result: Finished) => Promise<void>;
  /** Results that the store does not take any more are given up from here on. */
  readonly giveUp: () => void;
}

/** Bounded by the deliveries under way: each waits for its own result. */
export function createFinishQueue(redis: Redis, live: Live, log: Log): FinishQueue {
  let waiting: { result: Finished; done: () => void }[] = [];
  let flushing = false;
  let givingUp = false;

  async function flush(): Promise<void> {
    flushing = true;
    let lastBatch = 0;
    while (waiting.length > 0) {
      if (lastBatch >= LOADED_BATCH) await Bun.sleep(GATHER_MS);
      const batch = waiting;
      lastBatch = batch.length;
      waiting = [];
      try {
        await finishDeliveries(
          redis,
          batch.map(({ result }) => result),
          live.now(),
        );
        for (const { done } of batch) done();
      } catch (error) {
        log.warn({ reason: (error as Error).message }, "webhook results wait for the store");
        if (givingUp) for (const { done } of batch) done();
        else waiting = [...batch, ...waiting];
        await Bun.sleep(TROUBLE_WAIT_MS);
      }
    }
    flushing = false;
  }

  return {
    record(result) {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.push({ result, done: resolve });
      if (!flushing) void flush();
      return promise;
    },
    giveUp() {
      givingUp = true;
    },
  };
}
