/**
 * Results on their way to the store: under load what gathers within a few milliseconds goes with one call a partition. Those
 * that a partition does not take are tried again after a while, and hold up no others.
 */
import type { Log } from "#core/log.ts";
import type { Redis } from "#core/redis/client.ts";
import { type Finished, finishDeliveries } from "#core/redis/finish-deliveries.ts";
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

/** Bounded by the deliveries under way: each waits for its own result. */
export function createFinishQueue(redis: Redis, live: Live, log: Log): FinishQueue {
  let waiting = new Map<Finished, () => void>();
  let flushing = false;
  let givingUp = false;

  async function work(): Promise<void> {
    flushing = true;
    let lastBatch = 0;
    while (waiting.size > 0) {
      if (lastBatch >= LOADED_BATCH) await Bun.sleep(GATHER_MS);
      const batch = waiting;
      lastBatch = batch.size;
      waiting = new Map();
      await flush(batch);
    }
    flushing = false;
  }

  async function flush(batch: Map<Finished, () => void>): Promise<void> {
    const { left, failure } = await finishDeliveries(redis, [...batch.keys()], live.now());
    const again = new Map(left.map((result) => [result, batch.get(result) ?? (() => {})]));
    for (const [result, done] of batch) if (givingUp || !again.has(result)) done();
    if (failure === null) return;
    log.warn({ reason: failure.message }, "webhook results wait for the store");
    if (!givingUp) setTimeout(() => enqueue(again), TROUBLE_WAIT_MS);
  }

  function enqueue(results: Iterable<[Finished, () => void]>): void {
    for (const [result, done] of results) waiting.set(result, done);
    if (!flushing) void work();
  }

  return {
    record(result, done) {
      enqueue([[result, done]]);
    },
    giveUp() {
      givingUp = true;
    },
  };
}
