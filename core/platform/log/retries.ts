/**
 * Acknowledging, and what failed in a group by its own fault: its entry is acknowledged all the same, in one step, and it is
 * tried again by whichever process of the group comes first. Dead letters that are driven again wait here too, for a single
 * try.
 */
import { chunks } from "#core/platform/process/chunks.ts";
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import {
  deadLetterKey,
  logCountsKey,
  retriesKey,
  retryAgesKey,
} from "#core/platform/redis/keys.ts";
import { runTogether } from "#core/platform/redis/run-together.ts";
import { unlessShardUnavailable } from "#core/platform/redis/unavailable-shard.ts";
import { limit } from "#core/platform/schema/limit.ts";
import acknowledgeSource from "./acknowledge.lua" with { type: "text" };
import dueSource from "./due-retries.lua" with { type: "text" };
import type { LogEntry, LogItem } from "./log-entry.ts";
import settleSource from "./settle-retry.lua" with { type: "text" };

const acknowledgeScript = script(acknowledgeSource);
const dueScript = script(dueSource);
const settleScript = script(settleSource);

export const MAX_TRIES = limit(5, "tries of an event or change", "dead letter with the error");
const FIRST_RETRY_MS = 1_000;
/**
 * Dead letters that a log keeps, about 2 KB each; while it is full, an entry that fails for the last time stays in retry.
 */
export const DEAD_LETTERS_PER_LOG = limit(
  10_000,
  "dead letters of a log",
  "an entry that fails for the last time is retried every minute instead; a metric and the log report it",
);
const AT_LIMIT_RETRY_MS = 60_000;
/** Until what waits for an unavailable store is tried again. */
const WAIT_RETRY_MS = 2_000;
/** Characters of a failure that its dead letter tells. */
const REASON_LENGTH = 1_000;
/** Entries, and tries, one script call takes. */
const PER_CALL = 100;
/** Of Redis, for one. */
const ENTRY_US = 3;

/** An entry that failed by its own fault; entries not named are done. */
export interface Failure {
  readonly entry: LogItem;
  readonly reason: string;
  /** What it needs is unavailable, through no fault of its own: it is tried again without end, and holds up no other. */
  readonly waits?: boolean;
}

/** An event or change that waits for its next try. */
export interface Retry extends LogItem {
  /** So far. */
  readonly tries: number;
  /** Tries that failed because what it needs was unavailable. */
  readonly waited?: number;
  /** As it is stored. */
  readonly text: string;
}

/** Acknowledges entries of one log, and keeps what failed of them: one script call for 100 entries. */
export async function acknowledge(
  redis: Redis,
  group: string,
  key: string,
  entries: readonly LogEntry[],
  failures: readonly Failure[] = [],
): Promise<void> {
  const keys = [key, logCountsKey(key), retriesKey(key, group), retryAgesKey(key, group)];
  const failed = Map.groupBy(failures, ({ entry }) => logEntryId(entry));
  const calls = chunks(entries, PER_CALL).map((part) => {
    const kept = part.flatMap(({ id: logId }) =>
      (failed.get(logId) ?? []).flatMap(({ entry: { id, fields }, waits }) => [
        logId,
        waits ? retryText(id, fields, 0, 1) : retryText(id, fields, 1),
      ]),
    );
    const args = [
      ...[group, String(FIRST_RETRY_MS), String(part.length)],
      ...part.flatMap(({ id, items }) => [id, String(items.length)]),
      ...kept,
    ];
    return runTogether(redis, acknowledgeScript, keys, args, part.length * ENTRY_US);
  });
  await Promise.all(calls);
}

/** Of the entry in the log that it stands in. */
function logEntryId({ id }: LogItem): string {
  return id.replace(/\..*/, "");
}

/** Each text of an item is another one: the script takes the old one away after it has added the new one. */
function retryText(id: string, fields: LogItem["fields"], tries: number, waited = 0): string {
  const text = { id, entry: JSON.stringify(fields), tries };
  return JSON.stringify(waited === 0 ? text : { ...text, waited });
}

/** On a cluster, those of unavailable partitions are left out. @param limit of each log */
export async function readDueRetries(
  redis: Redis,
  logKeys: readonly string[],
  group: string,
  limit: number,
): Promise<Retry[]> {
  const lists = await Promise.all(
    logKeys.map((key) =>
      runTogether<string[]>(
        redis,
        dueScript,
        [retriesKey(key, group)],
        [String(limit)],
        ENTRY_US,
      ).catch(unlessShardUnavailable(redis)),
    ),
  );
  return lists.flatMap((texts, at) =>
    (texts ?? []).map((text) => {
      const { id, entry, tries = MAX_TRIES - 1, waited = 0 } = JSON.parse(text);
      return { key: logKeys[at] ?? "", id, fields: JSON.parse(entry), tries, waited, text };
    }),
  );
}

/** What came of a try: null = done, else why it failed. */
export interface Tried {
  readonly retry: Retry;
  readonly reason: string | null;
  /** As of its failure. */
  readonly waits?: boolean;
}

export interface Settled extends Tried {
  /** It failed for the last time but stays in retry, because its log is full of dead letters. */
  readonly isKept: boolean;
}

/**
 * What failed once more waits twice as long each time, and the fifth failure makes it a dead letter. One script call for 100
 * tries of a log.
 * @returns those that were settled by this call and not by another process before
 */
export async function settleRetries(
  redis: Redis,
  group: string,
  tried: readonly Tried[],
  deadLettersPerLog = DEAD_LETTERS_PER_LOG,
): Promise<Settled[]> {
  const settled: Settled[] = [];
  const groups = Map.groupBy(tried, ({ retry }) => retry.key);
  await Promise.all(
    [...groups].map(async ([key, own]) => {
      const keys = [retriesKey(key, group), retryAgesKey(key, group), deadLetterKey(key)];
      for (const part of chunks(own, PER_CALL)) {
        const limits = [deadLettersPerLog, AT_LIMIT_RETRY_MS].map(String);
        const args = [key, group, ...limits, ...part.flatMap(settleArguments)];
        const reply = await run<number[]>(redis, settleScript, keys, args).catch(
          unlessShardUnavailable(redis),
        );
        if (reply === undefined) break;
        part.forEach((one, at) => {
          if (reply[at] !== 0) settled.push({ ...one, isKept: reply[at] === 2 });
        });
      }
    }),
  );
  return settled;
}

export function isLastTry({ retry, waits }: Tried): boolean {
  return !waits && retry.tries + 1 >= MAX_TRIES;
}

function settleArguments(one: Tried): string[] {
  const { retry, reason, waits } = one;
  const { id, fields, text } = retry;
  if (reason === null) return [text, "", "0", ""];
  if (waits) {
    const again = retryText(id, fields, retry.tries, (retry.waited ?? 0) + 1);
    return [text, again, String(WAIT_RETRY_MS), ""];
  }
  if (isLastTry(one)) return [text, "", "0", reason.slice(0, REASON_LENGTH) || "failed"];
  const tries = retry.tries + 1;
  return [text, retryText(id, fields, tries), String(FIRST_RETRY_MS * 2 ** (tries - 1)), ""];
}
