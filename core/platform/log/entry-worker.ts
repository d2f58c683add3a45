/** Hands entries to the handler of a consumer, acknowledges what was done, and retries what failed. */

import { loggedIds } from "#core/events/store/event-log.ts";
import { chunksBySize } from "#core/platform/process/chunks.ts";
import type { Log } from "#core/platform/process/log.ts";
import { deadLetters, deadLettersAtLimit } from "#core/platform/process/metrics.ts";
import { type HandlingOptions, handle, type Left } from "./handling.ts";
import type { LogEntry, LogItem } from "./log-entry.ts";
import {
  acknowledge,
  type Failure,
  isLastTry,
  readDueRetries,
  type Settled,
  settleRetries,
} from "./retries.ts";
import { type GroupName, LOGS, type LogName } from "./streams.ts";

const LOG_WAITING_EVERY_MS = 30_000;

export interface EntryWorkerOptions extends HandlingOptions {
  readonly log: Log;
  readonly source: LogName;
  readonly group: GroupName;
  readonly batch: number;
}

export interface EntryWorker {
  /** @returns what was left of it is neither acknowledged nor counted */
  readonly process: (entries: readonly LogEntry[]) => Promise<Left>;
  /** @param keys partitions of the log to look at */
  readonly retryDue: (keys: readonly string[]) => Promise<void>;
}

/** An entry worker, and when it last logged that entries wait. */
interface Working extends EntryWorkerOptions {
  waitingLoggedAtMs: number;
}

export function openEntryWorker(options: EntryWorkerOptions): EntryWorker {
  const working: Working = { ...options, waitingLoggedAtMs: Number.NEGATIVE_INFINITY };
  for (const counter of [deadLetters, deadLettersAtLimit]) counter.inc({ group: options.group }, 0);
  return {
    process: (entries) => processEntries(working, entries),
    retryDue: (keys) => retryDue(working, keys),
  };
}

async function processEntries(working: Working, entries: readonly LogEntry[]): Promise<Left> {
  const left = new Map<string, unknown>();
  for (const part of chunksBySize(entries, working.batch, ({ items }) => items.length)) {
    working.onStep();
    const handled = await handle(
      working,
      part.flatMap(({ items }) => items),
    );
    const done = part.filter(({ key }) => !handled.left.has(key));
    const unheard = await acknowledgeAll(working, done, handled.failures);
    for (const [key, error] of [...handled.left, ...unheard]) left.set(key, error);
  }
  return left;
}

/** @returns partitions in which nothing could be acknowledged */
async function acknowledgeAll(
  working: Working,
  entries: readonly LogEntry[],
  failures: readonly Failure[],
): Promise<Left> {
  reportWaiting(working, failures);
  for (const { entry, reason, waits } of failures) {
    if (!waits) reportRetry(working, entry, 1, reason);
  }
  const failed = Map.groupBy(failures, ({ entry }) => entry.key);
  const left = new Map<string, unknown>();
  const groups = [...Map.groupBy(entries, ({ key }) => key)];
  const acknowledging = groups.map(([key, own]) =>
    acknowledge(working.redis, working.group, key, own, failed.get(key)).catch((error) => {
      left.set(key, error);
    }),
  );
  await Promise.all(acknowledging);
  return left;
}

/** Two processes may take one at the same time; handlers bear repetition, and it is settled once. */
async function retryDue(working: Working, reachable: readonly string[]): Promise<void> {
  const { redis, source, group, batch } = working;
  const perLog = Math.ceil(batch / LOGS[source].keys().length);
  const due = await readDueRetries(redis, reachable, group, perLog);
  if (due.length === 0) return;
  working.onStep();
  const { failures, left } = await handle(working, due);
  reportWaiting(working, failures);
  const failed = new Map(failures.map((failure) => [nameOf(failure.entry), failure]));
  const tried = due
    .filter(({ key }) => !left.has(key))
    .map((retry) => {
      const { reason = null, waits = false } = failed.get(nameOf(retry)) ?? {};
      return { retry, reason, waits };
    });
  for (const settled of await settleRetries(redis, group, tried)) reportSettled(working, settled);
}

/** Over and over again while a shard is unavailable: one line, then one every so often. */
function reportWaiting(working: Working, failures: readonly Failure[]): void {
  const all = failures.filter(({ waits }) => waits);
  const [first] = all;
  const nowMs = performance.now();
  if (!first || nowMs < working.waitingLoggedAtMs + LOG_WAITING_EVERY_MS) return;
  working.waitingLoggedAtMs = nowMs;
  const { group, log } = working;
  log.warn({ group, entries: all.length, reason: first.reason }, "entries wait");
}

function reportRetry(
  { log, source, group }: Working,
  entry: LogItem,
  tries: number,
  reason: string,
): void {
  log.warn({ group, ...idsOf(source, entry), tries, reason }, "entry failed; retrying");
}

function reportSettled(working: Working, one: Settled): void {
  const { log, source, group } = working;
  const { retry: entry, reason, isKept, waits } = one;
  if (reason === null || waits) return;
  if (isKept) {
    deadLettersAtLimit.inc({ group });
    const about = { group, log: entry.key, ...idsOf(source, entry), reason };
    log.error(about, "the log has no room for more dead letters; the entry keeps retrying");
  } else if (isLastTry(one)) {
    deadLetters.inc({ group });
    log.error({ group, ...idsOf(source, entry), reason }, "entry became a dead letter");
  } else reportRetry(working, entry, entry.tries + 1, reason);
}

function idsOf(source: LogName, { id, fields }: LogItem) {
  return { entry: id, ...(source === "event" && loggedIds(fields)) };
}

function nameOf({ key, id }: LogItem): string {
  return `${key} ${id}`;
}
