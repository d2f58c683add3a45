/**
 * A consumer of one log: reads batches over all partitions, hands them to its handler, acknowledges what was done. An entry
 * of the log holds many events or changes (`log-entry.ts`); the handler is given them one by one.
 *
 * | what happens                        | what follows                                                            |
 * |-------------------------------------|-------------------------------------------------------------------------|
 * | all of an entry is done             | acknowledged, deleted once every group has                               |
 * | a part fails (its own fault)        | acknowledged, and the part tried again after 1, 2, 4, 8 s; the fifth     |
 * |                                     | failure makes it a dead letter (`retries.ts`)                            |
 * | the log is full of dead letters     | the part is retried every minute, and a metric reports it                |
 * | a dead letter is redriven           | only this group tries it once more; a failure makes it one again         |
 * | ClickHouse or the one Redis is down | the whole batch waits and is retried without end; nothing is counted     |
 * | a shard of a cluster is unavailable | its partitions are left behind (`behind.ts`), and what others hold for it |
 * |                                     | waits in retry (`handling.ts`)  ; everything else goes on              |
 * | an answer of Redis is lost          | what was delivered to us is asked for again                              |
 * | this process dies                   | another process takes its entries over once its heartbeat has expired |
 * | the log or group is gone            | created again                                                            |
 */
import { randomUUID } from "node:crypto";
import type { Log } from "#core/platform/process/log.ts";
import { startTicking, type Ticking, untilTickMs } from "#core/platform/process/tick.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { followOutage } from "#core/platform/redis/outage.ts";
import { openWaker } from "#core/platform/redis/wake.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { followBehind } from "./behind.ts";
import { type EntryWorker, openEntryWorker } from "./entry-worker.ts";
import type { Handler } from "./handling.ts";
import { startHeartbeat, takeOver } from "./heartbeat.ts";
import type { LogEntry } from "./log-entry.ts";
import { type LogReader, openLogReader } from "./log-reader.ts";
import { type GroupName, LOGS, type LogName, trimLog } from "./streams.ts";

export type { Handler } from "./handling.ts";
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
const HOUSEKEEPING_MS = 1_000;
/** Empty logs are trimmed again after the next announcement, or after this long without one. */
const EMPTY_WAIT_MS = limit(
  30_000,
  "time for which a log that is empty is not trimmed",
  "it is looked at again",
);
/** A process whose step takes longer than this stops its heartbeat: others may do better. */
const STUCK_MS = 60_000;

export function startConsumer(options: ConsumerOptions): Consumer {
  const { redis, log, source, group, lingerMs = 0, gatherMs = 0 } = options;
  const { keys } = LOGS[source];
  const consumer = randomUUID();
  const outage = followOutage(log, group);
  let stopping = false;
  let stepBegunAtMs = performance.now();
  let housekeepingAtMs = 0;

  const waker = openWaker(redis, source);
  const isStuck = () => performance.now() >= stepBegunAtMs + STUCK_MS;
  const onStep = () => {
    stepBegunAtMs = performance.now();
  };
  const catchUp = (key: string) => processPending(reader, worker, key);
  const behind = followBehind({ redis, outage, catchUp, onBack: waker.wake });
  const onFailed = (key: string, error: unknown) => behind.add(key, error, stepBegunAtMs);
  const reader = openLogReader({
    ...options,
    consumer,
    lingers: lingerMs > 0,
    isBehind: behind.has,
    onFailed,
  });
  const worker = openEntryWorker({ ...options, outage, isStopping: () => stopping, onStep });

  /** What is left of the entries stays pending. */
  async function process(entries: readonly LogEntry[]): Promise<void> {
    for (const [key, error] of await worker.process(entries)) onFailed(key, error);
  }

  async function turn(): Promise<void> {
    await keepHouse();
    onStep();
    waker.reset();
    const entries = await reader.next();
    if (entries.length > 0) await process(entries);
    if (behind.isEmpty()) outage.succeeded();
    if (entries.length === 0) await waker.wait(untilTickMs(IDLE_WAIT_MS));
    const moreMs = entries.length === 0 ? gatherMs : reader.isQuiet() ? lingerMs : 0;
    if (moreMs > 0 && !stopping) await Bun.sleep(moreMs);
  }

  async function keepHouse(): Promise<void> {
    if (performance.now() < housekeepingAtMs) return;
    housekeepingAtMs = performance.now() + HOUSEKEEPING_MS;
    const there = keys.filter((key) => !behind.has(key));
    await worker.retryDue(there);
    await takeOver(redis, there, source, group, consumer, process);
  }

  async function recover(error: unknown): Promise<void> {
    // Whatever was delivered to us may not have reached us.
    for (const key of keys) onFailed(key, error);
    if (!stopping) await Bun.sleep(outage.failed(error));
  }

  async function loop(): Promise<void> {
    await heartbeat.started;
    while (!stopping) await turn().catch(recover);
    await reader
      .rest()
      .then(process)
      .catch((error) => leave(log, group, error));
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
      await Promise.all([running, behind.stop(), trimming?.stop()]);
      waker.close();
    },
  };
}

/** @throws where something of a partition is left that cannot be done yet */
async function processPending(reader: LogReader, worker: EntryWorker, key: string): Promise<void> {
  for await (const entries of reader.pending(key)) {
    const [left] = (await worker.process(entries)).values();
    if (left) throw left;
  }
}

function leave(log: Log, group: GroupName, { message }: Error): void {
  log.warn({ group, reason: message }, "batch left to other consumers");
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
