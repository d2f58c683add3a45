/**
 * Queue of results for the store: under load, the results of a few milliseconds share one call per partition. While the
 * store, or a partition of it, is unavailable, they wait here without delaying others, so that nothing a receiver has
 * accepted is sent again.
 */

import type { Live } from "#core/configuration/store/live.ts";
import type { Log } from "#core/platform/process/log.ts";
import { internalErrors } from "#core/platform/process/metrics.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { followOutage, type Outage } from "#core/platform/redis/outage.ts";
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

type Batch = Map<Finished, () => void>;

/** Bounded by the deliveries under way: each waits for its own result. */
export interface FinishQueue {
  readonly redis: Redis;
  readonly live: Live;
  readonly log: Log;
  readonly outage: Outage;
  waiting: Batch;
  /** Results that wait for their time, by timer. */
  readonly later: Map<ReturnType<typeof setTimeout>, Batch>;
  unhurried: Batch;
  isFlushing: boolean;
  isGivingUp: boolean;
}

export function createFinishQueue(redis: Redis, live: Live, log: Log): FinishQueue {
  return {
    redis,
    live,
    log,
    outage: followOutage(log, "webhook results"),
    waiting: new Map(),
    later: new Map(),
    unhurried: new Map(),
    isFlushing: false,
    isGivingUp: false,
  };
}

/** @param done called once the result is recorded, or given up: its lease ends then and the delivery is sent again */
export function record(queue: FinishQueue, result: Finished, done: () => void): void {
  queue.waiting.set(result, done);
  if (!queue.isFlushing) void work(queue);
}

/** The same for a result that frees no slot. */
export function recordUnhurried(queue: FinishQueue, result: Finished, done: () => void): void {
  if (queue.unhurried.size === 0) setTimeout(recordGathered, UNHURRIED_MS, queue);
  queue.unhurried.set(result, done);
}

function recordGathered(queue: FinishQueue): void {
  const batch = queue.unhurried;
  queue.unhurried = new Map();
  for (const [result, done] of batch) record(queue, result, done);
}

/** Results that the store does not take are given up from here on. */
export function giveUp(queue: FinishQueue): void {
  queue.isGivingUp = true;
  for (const [timer, results] of queue.later) {
    clearTimeout(timer);
    for (const done of results.values()) done();
  }
  queue.later.clear();
}

function recordLater(queue: FinishQueue, results: Batch, waitMs: number): void {
  const timer = setTimeout(() => {
    queue.later.delete(timer);
    for (const [result, done] of results) record(queue, result, done);
  }, waitMs);
  queue.later.set(timer, results);
}

async function work(queue: FinishQueue): Promise<void> {
  queue.isFlushing = true;
  let lastBatch = 0;
  while (queue.waiting.size > 0) {
    if (lastBatch >= LOADED_BATCH) await Bun.sleep(GATHER_MS);
    const batch = queue.waiting;
    lastBatch = batch.size;
    queue.waiting = new Map();
    await flush(queue, batch);
  }
  queue.isFlushing = false;
}

/** Records a batch; what cannot be recorded now is tried again later. */
async function flush(queue: FinishQueue, batch: Batch): Promise<void> {
  const { redis, live, outage } = queue;
  const left = await finishDeliveries(redis, [...batch.keys()], live.now());
  const unavailable: Batch = new Map();
  const suspects: Batch = new Map();
  for (const [result, done] of batch) {
    const error = left.get(result);
    if (error === undefined || queue.isGivingUp) done();
    else if (isStoreUnavailable(error, redis)) unavailable.set(result, done);
    else suspects.set(result, done);
  }
  if (left.size === 0) outage.succeeded();
  const [refused] = unavailable.keys();
  if (refused) {
    outage.failed(left.get(refused));
    recordLater(queue, unavailable, TROUBLE_WAIT_MS);
  }
  for (const [result, done] of suspects) {
    const alone = new Map([[result, done]]);
    if (batch.size > 1) await flush(queue, alone);
    else setApart(queue, alone, result, left.get(result));
  }
}

/** A result that an internal error prevents from being recorded delays no other, and keeps its lease: it is not sent again. */
function setApart(queue: FinishQueue, alone: Batch, { of }: Finished, error: Error | undefined) {
  internalErrors.inc({ part: "webhook results" });
  const about = { err: error, delivery: of.deliveryId };
  queue.log.error(about, "a webhook result could not be recorded; retrying");
  recordLater(queue, alone, FAULT_WAIT_MS);
}
