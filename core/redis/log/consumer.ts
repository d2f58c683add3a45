/**
 * A consumer of one log: reads batches over all partitions, hands them to its handler, acknowledges what was done. An entry
 * of the log holds many events or changes (`log-entry.ts`); the handler is given them one by one.
 *
 * | what happens                        | what follows                                                            |
 * |-------------------------------------|-------------------------------------------------------------------------|
 * | all of an entry is done             | acknowledged, deleted once every group has                               |
 * | a part fails (its own fault)        | acknowledged, and the part tried again after 1, 2, 4, 8 s; the fifth     |
 * |                                     | failure parks it as dead letter (`retries.ts`)                           |
 * | the log is full of dead letters     | the part is retried every minute, and a metric reports it                |
 * | a dead letter is redriven           | only this group tries it once more; a failure parks it again             |
 * | a store is unavailable              | the whole batch waits and is retried without end; nothing is counted     |
 * | an answer of Redis is lost          | what was delivered to us is asked for again                              |
 * | this process dies                   | another process takes its entries over once its heartbeat has expired |
 * | the log or group is gone            | created again                                                            |
 */
import { randomUUID } from "node:crypto";
import type { Log } from "#core/log.ts";
import type { Redis } from "#core/redis/client/client.ts";
import { followOutage } from "#core/redis/client/outage.ts";
import { openWaker } from "#core/redis/client/wake.ts";
import { startTicking, type Ticking, untilTickMs } from "#core/tick.ts";
import { type Handler, openEntryWorker } from "./entry-worker.ts";
import { startHeartbeat, takeOver } from "./heartbeat.ts";
import { openLogReader } from "./log-reader.ts";
import {
  ensureGroups,
  type GroupName,
  isReplyError,
  LOGS,
  type LogName,
  trimLog,
} from "./streams.ts";

export type { Handler } from "./entry-worker.ts";
export type { LogItem } from "./log-entry.ts";
export type { Failure } from "./retries.ts";

export interface ConsumerOptions {
  readonly redis: Redis;
  readonly log: Log;
  readonly source: LogName;
  readonly group: GroupName;
  readonly handler: Handler;
  /** Events or changes read per partition at once, approximately: an entry is never cut. The handler is given those of
   * 16 partitions at most. */
  readonly batch: number;
  /** Waits this long after a read that left nothing behind, so that the next batch is larger; default 0. */
  readonly lingerMs?: number;
  /** Waits this long after new entries were announced, so that the first batch is larger; default 0. */
  readonly gatherMs?: number;
}

export interface Consumer {
  /** Whether it is reading and not stuck in a batch; it also counts as running while it waits for an unavailable store. */
  readonly isRunning: () => boolean;
  /** Finishes what is in hand, acknowledges it and ends. */
  readonly stop: () => Promise<void>;
}

/** New entries are announced; this long after nothing came it looks by itself. */
const IDLE_WAIT_MS = 2_000;
const GONE_WAIT_MS = 500;
const HOUSEKEEPING_MS = 1_000;
/** Empty logs are trimmed again after the next announcement, or after this long without one. */
const EMPTY_WAIT_MS = 30_000;
/** A process whose step takes longer than this stops its heartbeat: others may do better. */
const STUCK_MS = 60_000;

export function startConsumer(options: ConsumerOptions): Consumer {
  const { redis, log, source, group, handler, batch, lingerMs = 0, gatherMs = 0 } = options;
  const consumer = randomUUID();
  const outage = followOutage(log, group);
  let stopping = false;
  let stepBegunAtMs = performance.now();
  let housekeepingAtMs = 0;
  /** After trouble: entries may have been delivered to us without reaching us, or reached us and not been done. */
  let hasPending = false;

  const waker = openWaker(redis, source);
  const isStopping = () => stopping;
  const isStuck = () => performance.now() >= stepBegunAtMs + STUCK_MS;
  const onStep = () => {
    stepBegunAtMs = performance.now();
  };
  const reader = openLogReader({ redis, source, group, consumer, batch, lingers: lingerMs > 0 });
  const base = { redis, log, source, group, handler, batch };
  const worker = openEntryWorker({ ...base, outage, isStopping, onStep });

  async function turn(): Promise<void> {
    if (hasPending) {
      for await (const entries of reader.pending()) await worker.process(entries);
      hasPending = false;
    }
    await keepHouse();
    onStep();
    waker.reset();
    const entries = await reader.next();
    if (entries.length > 0) await worker.process(entries);
    outage.succeeded();
    if (entries.length === 0) await waker.wait(untilTickMs(IDLE_WAIT_MS));
    const lingersMs = reader.isQuiet() ? lingerMs : 0;
    const moreMs = entries.length === 0 ? gatherMs : lingersMs;
    if (moreMs > 0 && !stopping) await Bun.sleep(moreMs);
  }

  async function keepHouse(): Promise<void> {
    if (performance.now() < housekeepingAtMs) return;
    housekeepingAtMs = performance.now() + HOUSEKEEPING_MS;
    await worker.retryDue();
    await takeOver(redis, source, group, consumer, worker.process);
  }

  async function recover(error: unknown): Promise<void> {
    await reader.reset();
    hasPending = true;
    const isGone = isReplyError(error, "NOGROUP");
    if (isGone) await ensureGroups(redis).catch(() => {});
    if (!stopping) await Bun.sleep(isGone ? GONE_WAIT_MS : outage.failed(error));
  }

  async function loop(): Promise<void> {
    await heartbeat.started;
    while (!stopping) await turn().catch(recover);
    await reader
      .rest()
      .then(worker.process)
      .catch((error: Error) => {
        log.warn({ group, reason: error.message }, "batch left to other consumers");
      });
    await heartbeat.stop();
  }

  const heartbeat = startHeartbeat(redis, group, consumer, isStuck);
  const trimming = startTrimming(redis, source, group);
  const running = loop();
  return {
    isRunning: () => !stopping && !isStuck(),
    async stop() {
      stopping = true;
      waker.wake();
      await Promise.all([running, trimming?.stop()]);
      waker.close();
    },
  };
}

/**
 * One group trims for all: while it is not running nothing could be deleted, since it has acknowledged nothing. On its own
 * timer: while a batch waits for a store, other groups acknowledge, and only trimming frees memory.
 */
function startTrimming(redis: Redis, source: LogName, group: GroupName): Ticking | null {
  const { keys, groups } = LOGS[source];
  if (group !== groups[0]) return null;
  let emptyUntilMs = 0;
  let isAnnounced = false;
  const waker = openWaker(redis, source, () => {
    isAnnounced = true;
  });
  const trimAll = async () => {
    if (!isAnnounced && performance.now() < emptyUntilMs) return;
    isAnnounced = false;
    emptyUntilMs = 0;
    const left = await Promise.all(keys.map((key) => trimLog(redis, source, key)));
    if (left.every((entries) => entries === 0)) emptyUntilMs = performance.now() + EMPTY_WAIT_MS;
  };
  const ticking = startTicking(HOUSEKEEPING_MS, trimAll, () => {});
  return {
    async stop() {
      await ticking.stop();
      waker.close();
    },
  };
}
