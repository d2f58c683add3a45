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
import { followOutage, type Outage } from "#core/platform/redis/outage.ts";
import { openWaker, type Waker } from "#core/platform/redis/wake.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { type Behind, followBehind } from "./behind.ts";
import { type EntryWorker, openEntryWorker } from "./entry-worker.ts";
import type { Handler } from "./handling.ts";
import { type Heartbeat, startHeartbeat, takeOver } from "./heartbeat.ts";
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
  /** Events or changes that the handler is given at once, over all partitions, approximately: an entry is never cut. */
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

/** How far a consumer is; the times are of `performance.now()`. */
interface Progress {
  stopping: boolean;
  stepBegunAtMs: number;
  housekeepingAtMs: number;
}

/** What a consumer is made of. */
interface Parts extends ConsumerOptions {
  readonly progress: Progress;
  /** Its name in the group. */
  readonly consumer: string;
  readonly outage: Outage;
  readonly waker: Waker;
  readonly behind: Behind;
  readonly reader: LogReader;
  readonly worker: EntryWorker;
  readonly heartbeat: Heartbeat;
}

export function startConsumer(options: ConsumerOptions): Consumer {
  const { redis, log, source, group, lingerMs = 0 } = options;
  const consumer = randomUUID();
  const progress = { stopping: false, stepBegunAtMs: performance.now(), housekeepingAtMs: 0 };
  const outage = followOutage(log, group);
  const waker = openWaker(redis, source);
  const catchUp = (key: string) => processPending(reader, worker, key);
  const behind = followBehind({ redis, outage, catchUp, onBack: waker.wake });
  const reader = openLogReader({
    ...options,
    consumer,
    lingers: lingerMs > 0,
    isBehind: behind.has,
    onFailed: (key, error) => behind.add(key, error, progress.stepBegunAtMs),
  });
  const worker = openEntryWorker({
    ...options,
    outage,
    isStopping: () => progress.stopping,
    onStep: () => beginStep(progress),
  });
  const heartbeat = startHeartbeat(redis, group, consumer, () => isStuck(progress));
  const parts = {
    ...options,
    progress,
    consumer,
    outage,
    waker,
    behind,
    reader,
    worker,
    heartbeat,
  };
  const trimming = startTrimming(redis, source, group);
  const running = takeTurns(parts);
  return {
    isRunning: () => !progress.stopping && !isStuck(progress),
    async stop() {
      progress.stopping = true;
      waker.wake();
      await Promise.all([running, behind.stop(), trimming?.stop()]);
      waker.close();
    },
  };
}

function beginStep(progress: Progress): void {
  progress.stepBegunAtMs = performance.now();
}

function isStuck({ stepBegunAtMs }: Progress): boolean {
  return performance.now() >= stepBegunAtMs + STUCK_MS;
}

async function takeTurns(parts: Parts): Promise<void> {
  const { log, group, progress, reader, heartbeat } = parts;
  await heartbeat.started;
  while (!progress.stopping) await takeTurn(parts).catch((error) => recover(parts, error));
  await reader
    .rest()
    .then((entries) => processEntries(parts, entries))
    .catch((error) => leave(log, group, error));
  await heartbeat.stop();
}

async function takeTurn(parts: Parts): Promise<void> {
  const { progress, reader, behind, outage, lingerMs = 0, gatherMs = 0 } = parts;
  beginStep(progress);
  parts.waker.reset();
  const entries = await reader.next();
  if (entries.length > 0) await processEntries(parts, entries);
  if (behind.isEmpty()) outage.succeeded();
  await keepHouse(parts);
  if (entries.length === 0) await parts.waker.wait(untilTickMs(IDLE_WAIT_MS));
  const moreMs = entries.length === 0 ? gatherMs : reader.isQuiet() ? lingerMs : 0;
  if (moreMs > 0 && !progress.stopping) await Bun.sleep(moreMs);
}

/**
 * What waits for its next try, and what dead consumers hold: by the clock, and after what is new, so that no entry waits for it. Not
 * beside it: a step that hangs here must stop the heartbeat too.
 */
async function keepHouse(parts: Parts): Promise<void> {
  const { redis, source, group, consumer, progress, behind, worker } = parts;
  if (progress.stopping || performance.now() < progress.housekeepingAtMs) return;
  progress.housekeepingAtMs = performance.now() + HOUSEKEEPING_MS;
  beginStep(progress);
  const there = LOGS[source].keys().filter((key) => !behind.has(key));
  await worker.retryDue(there);
  const process = (entries: readonly LogEntry[]) => processEntries(parts, entries);
  await takeOver(redis, there, source, group, consumer, process);
}

/** What is left of the entries stays pending. */
async function processEntries(
  { worker, behind, progress }: Parts,
  entries: readonly LogEntry[],
): Promise<void> {
  for (const [key, error] of await worker.process(entries)) {
    behind.add(key, error, progress.stepBegunAtMs);
  }
}

async function recover({ source, progress, behind, outage }: Parts, error: unknown): Promise<void> {
  // Whatever was delivered to us may not have reached us.
  for (const key of LOGS[source].keys()) behind.add(key, error, progress.stepBegunAtMs);
  if (!progress.stopping) await Bun.sleep(outage.failed(error));
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
  if (group !== LOGS[source].groups[0]) return null;
  const trimming: Trimming = { emptyUntilMs: 0, isAnnounced: false };
  const waker = openWaker(redis, source, () => {
    trimming.isAnnounced = true;
  });
  const ticking = startTicking(
    HOUSEKEEPING_MS,
    () => trimAll(trimming, redis, source),
    () => {},
  );
  return {
    async stop() {
      await ticking.stop();
      waker.close();
    },
  };
}

interface Trimming {
  emptyUntilMs: number;
  isAnnounced: boolean;
}

async function trimAll(trimming: Trimming, redis: Redis, source: LogName): Promise<void> {
  if (!trimming.isAnnounced && performance.now() < trimming.emptyUntilMs) return;
  trimming.isAnnounced = false;
  trimming.emptyUntilMs = 0;
  const left = await Promise.all(LOGS[source].keys().map((key) => trimLog(redis, source, key)));
  if (left.every((entries) => entries === 0)) {
    trimming.emptyUntilMs = performance.now() + EMPTY_WAIT_MS;
  }
}
