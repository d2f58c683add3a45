/**
 * Queue of results for the store: under load, the results of a few milliseconds share one call per partition. While the
 * store, or a partition of it, is unavailable, they wait here without delaying others, so that nothing a receiver has
 * accepted is sent again.
 */

import type { Live } from "#core/configuration/store/live.ts";
import type { Log } from "#core/platform/process/log.ts";
import { internalErrors } from "#core/platform/process/metrics.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { followOutage } from "#core/platform/redis/outage.ts";
import { isStoreUnavailable } from "#core/platform/redis/store-unavailable.ts";
import {
  type Finished,
  finishDeliveries,
} from "#core/webhooks/store/deliveries/finish-deliveries.ts";

/**
 * Shorter than the pause of all senders after an outage (`deliver.ts`): results are recorded before new leases are granted.
 */
const TROUBLE_WAIT_MS = 200;
/** After a batch of so many the next one gathers: few large calls cost least, and one fsync each. */
const LOADED_BATCH = 16;
const GATHER_MS = 10;
/** Results that nobody waits for gather for longer: a call for each would keep the store syncing its log. */
const UNHURRIED_MS = 100;
/** Wait of a result that an internal error prevents from being recorded. */
const FAULT_WAIT_MS = 60_000;

export interface FinishQueue {
  /** `done` once the result is recorded, or given up: its lease ends then and the delivery is sent again. */
  readonly record: (result: Finished, done: () => void) => void;
  /** The same for a result that frees no slot. */
  readonly recordUnhurried: (result: Finished, done: () => void) => void;
  /** Results that the store does not take are given up from here on. */
  readonly giveUp: () => void;
}

type Batch = Map<Finished, () => void>;

/** Bounded by the deliveries under way: each waits for its own result. */
export function createFinishQueue(redis: Redis, live: Live, log: Log): FinishQueue {
  let waiting: Batch = new Map();
  let unhurried: Batch = new Map();
  let flushing = false;
  const later = createLater(enqueue);
  const flush = createFlush({ redis, live, log, later });

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

  function record(result: Finished, done: () => void): void {
    waiting.set(result, done);
    if (!flushing) void work();
  }

  function enqueue(results: Batch): void {
    for (const [result, done] of results) record(result, done);
  }

  function enqueueUnhurried(): void {
    const batch = unhurried;
    unhurried = new Map();
    enqueue(batch);
  }

  return {
    record,
    recordUnhurried(result, done) {
      if (unhurried.size === 0) setTimeout(enqueueUnhurried, UNHURRIED_MS);
      unhurried.set(result, done);
    },
    giveUp: later.giveUp,
  };
}

/** Results that wait for their next attempt, by timer. */
interface Later {
  readonly add: (results: Batch, waitMs: number) => void;
  readonly giveUp: () => void;
  readonly isGivingUp: () => boolean;
}

function createLater(enqueue: (results: Batch) => void): Later {
  const waiting = new Map<ReturnType<typeof setTimeout>, Batch>();
  let givingUp = false;
  return {
    add(results, waitMs) {
      const timer = setTimeout(() => {
        waiting.delete(timer);
        enqueue(results);
      }, waitMs);
      waiting.set(timer, results);
    },
    giveUp() {
      givingUp = true;
      for (const [timer, results] of waiting) {
        clearTimeout(timer);
        for (const done of results.values()) done();
      }
      waiting.clear();
    },
    isGivingUp: () => givingUp,
  };
}

interface FlushDeps {
  readonly redis: Redis;
  readonly live: Live;
  readonly log: Log;
  readonly later: Later;
}

/** Records a batch; what cannot be recorded now is tried again later. */
function createFlush({ redis, live, log, later }: FlushDeps): (batch: Batch) => Promise<void> {
  const outage = followOutage(log, "webhook results");

  async function flush(batch: Batch): Promise<void> {
    const left = await finishDeliveries(redis, [...batch.keys()], live.now());
    const unavailable: Batch = new Map();
    const suspects: Batch = new Map();
    for (const [result, done] of batch) {
      const error = left.get(result);
      if (error === undefined || later.isGivingUp()) done();
      else if (isStoreUnavailable(error, redis)) unavailable.set(result, done);
      else suspects.set(result, done);
    }
    if (left.size === 0) outage.succeeded();
    const [refused] = unavailable.keys();
    if (refused) {
      outage.failed(left.get(refused));
      later.add(unavailable, TROUBLE_WAIT_MS);
    }
    await setApart(suspects, left, batch.size === 1);
  }

  /**
   * A result that an internal error prevents from being recorded delays no other, and keeps its lease: it is not sent
   * again.
   */
  async function setApart(
    suspects: Batch,
    errors: ReadonlyMap<Finished, Error>,
    isAlone: boolean,
  ): Promise<void> {
    for (const [result, done] of suspects) {
      const alone = new Map([[result, done]]);
      if (isAlone) {
        internalErrors.inc({ part: "webhook results" });
        const about = { err: errors.get(result), delivery: result.of.deliveryId };
        log.error(about, "a webhook result could not be recorded; retrying");
        later.add(alone, FAULT_WAIT_MS);
      } else {
        await flush(alone);
      }
    }
  }

  return flush;
}
