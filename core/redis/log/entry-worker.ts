/** Hands entries to the handler of a consumer, acknowledges what was done, and retries what failed. */
import { chunksBySize } from "#core/chunks.ts";
import type { Log } from "#core/log.ts";
import { deadLetters, deadLettersAtLimit } from "#core/metrics.ts";
import type { Redis } from "#core/redis/client/client.ts";
import type { Outage } from "#core/redis/client/outage.ts";
import { isStoreUnavailable } from "#core/redis/client/store-unavailable.ts";
import { loggedIds } from "./event-log.ts";
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

/** An error caused by an unavailable store is not counted: the batch is kept. */
export type Handler = (entries: readonly LogItem[]) => Promise<readonly Failure[]>;

export interface EntryWorkerOptions {
  readonly redis: Redis;
  readonly log: Log;
  readonly source: LogName;
  readonly group: GroupName;
  readonly handler: Handler;
  readonly batch: number;
  readonly outage: Outage;
  readonly isStopping: () => boolean;
  /** Called whenever a step begins, so that a stuck one is noticed. */
  readonly onStep: () => void;
}

export interface EntryWorker {
  readonly process: (entries: readonly LogEntry[]) => Promise<void>;
  readonly retryDue: () => Promise<void>;
}

export function openEntryWorker(options: EntryWorkerOptions): EntryWorker {
  const { redis, log, source, group, handler, batch, outage, isStopping, onStep } = options;
  const { keys } = LOGS[source];

  /** If the handler throws, each entry is tried alone, so that one poisonous entry does not hold up the others. */
  async function handleInSteps(entries: readonly LogItem[]): Promise<readonly Failure[]> {
    try {
      return await handleUntilAvailable(entries);
    } catch (error) {
      if (isStoreUnavailable(error, redis)) throw error;
      const [only] = entries;
      if (entries.length === 1 && only) return [{ entry: only, reason: String(error) }];
      const failures: Failure[] = [];
      for (const entry of entries) failures.push(...(await handleInSteps([entry])));
      return failures;
    }
  }

  async function handleUntilAvailable(entries: readonly LogItem[]): Promise<readonly Failure[]> {
    for (;;) {
      try {
        return await handler(entries);
      } catch (error) {
        if (!isStoreUnavailable(error, redis) || isStopping()) throw error;
        await Bun.sleep(outage.failed(error));
        onStep();
      }
    }
  }

  async function acknowledgeAll(
    entries: readonly LogEntry[],
    failures: readonly Failure[],
  ): Promise<void> {
    logWaiting(log, group, failures);
    for (const { entry, reason, waits } of failures) if (!waits) logRetry(entry, 1, reason);
    const failed = Map.groupBy(failures, ({ entry }) => entry.key);
    await Promise.all(
      [...Map.groupBy(entries, ({ key }) => key)].map(([key, own]) =>
        acknowledge(redis, group, key, own, failed.get(key)),
      ),
    );
  }

  function logRetry(entry: LogItem, tries: number, reason: string): void {
    log.warn({ group, ...idsOf(source, entry), tries, reason }, "entry failed; retrying");
  }

  function logSettled(settled: Settled): void {
    const { retry, reason, isKept, waits } = settled;
    if (reason === null || waits) return;
    if (isKept) {
      deadLettersAtLimit.inc({ group });
      const about = { group, log: retry.key, ...idsOf(source, retry), reason };
      log.error(about, "the log has no room for more dead letters; the entry keeps retrying");
    } else if (isLastTry(settled)) {
      deadLetters.inc({ group });
      log.error({ group, ...idsOf(source, retry), reason }, "entry parked as dead letter");
    } else logRetry(retry, retry.tries + 1, reason);
  }

  return {
    async process(entries) {
      for (const part of chunksBySize(entries, batch * keys.length, ({ items }) => items.length)) {
        onStep();
        const failures = await handleInSteps(part.flatMap(({ items }) => items));
        await acknowledgeAll(part, failures);
      }
    },

    /** Two processes may take one at the same time; handlers bear repetition, and it is settled once. */
    async retryDue() {
      const due = await readDueRetries(redis, keys, group, batch);
      if (due.length === 0) return;
      onStep();
      const failures = await handleInSteps(due);
      logWaiting(log, group, failures);
      const failed = new Map(failures.map((failure) => [nameOf(failure.entry), failure]));
      const tried = due.map((retry) => {
        const { reason = null, waits = false } = failed.get(nameOf(retry)) ?? {};
        return { retry, reason, waits };
      });
      for (const settled of await settleRetries(redis, group, tried)) logSettled(settled);
    },
  };
}

function idsOf(source: LogName, { id, fields }: LogItem) {
  return { entry: id, ...(source === "event" && loggedIds(fields)) };
}

function logWaiting(log: Log, group: GroupName, failures: readonly Failure[]): void {
  const waiting = failures.filter(({ waits }) => waits);
  const [first] = waiting;
  if (first) log.warn({ group, entries: waiting.length, reason: first.reason }, "entries wait");
}

function nameOf({ key, id }: LogItem): string {
  return `${key} ${id}`;
}
