/**
 * What failed in a group by its own fault: its entry is acknowledged in the same step, and it is tried again by whichever
 * process of the group comes first. Dead letters that are driven again wait here too, for a single try.
 */
import { type Redis, run, script } from "./client.ts";
import { deadLetterKey, retriesKey } from "./keys.ts";
import type { Entry } from "./log-entry.ts";
import postponeSource from "./scripts/postpone.lua" with { type: "text" };
import settleSource from "./scripts/settle-retry.lua" with { type: "text" };

const postponeScript = script(postponeSource);
const settleScript = script(settleSource);

export const MAX_TRIES = 5;
const FIRST_RETRY_MS = 1_000;
/** Characters of a failure that its dead letter tells. */
const REASON_LENGTH = 1_000;

/** An entry that failed by its own fault; entries not named are done. */
export interface Failure {
  readonly entry: Entry;
  readonly reason: string;
}

/** An event or change that waits for its next try. */
export interface Retry extends Entry {
  /** So far. */
  readonly tries: number;
  readonly dueMs: number;
  /** As it is stored. */
  readonly text: string;
}

/** Acknowledges entries of one log and keeps what failed of them, in one step. */
export async function postpone(
  redis: Redis,
  group: string,
  key: string,
  ids: readonly string[],
  failures: readonly Failure[],
): Promise<void> {
  const dueMs = Date.now() + FIRST_RETRY_MS;
  const kept = failures.flatMap(({ entry: { id, fields } }) => [
    id.replace(/\..*/, ""),
    JSON.stringify({ id, entry: JSON.stringify(fields), tries: 1, dueMs }),
  ]);
  const keys = [key, retriesKey(key, group)];
  await run(redis, postponeScript, keys, [group, String(ids.length), ...ids, ...kept]);
}

/** Those that are due among the oldest of every log. */
export async function readDueRetries(
  redis: Redis,
  logKeys: readonly string[],
  group: string,
  limit: number,
): Promise<Retry[]> {
  const lists = await Promise.all(
    logKeys.map((key) => redis.zRange(retriesKey(key, group), 0, limit - 1)),
  );
  const nowMs = Date.now();
  return lists.flatMap((texts, at) =>
    texts.flatMap((text) => {
      const { id, entry, tries = MAX_TRIES - 1, dueMs = 0 } = JSON.parse(text);
      const key = logKeys[at] ?? "";
      return dueMs > nowMs ? [] : [{ key, id, fields: JSON.parse(entry), tries, dueMs, text }];
    }),
  );
}

/**
 * Done (`reason` null), or failed once more: it waits twice as long each time, and the fifth failure parks it.
 * @returns false when another process has settled it before
 */
export async function settleRetry(
  redis: Redis,
  group: string,
  retry: Retry,
  reason: string | null,
): Promise<"done" | "waiting" | "parked" | "settled_before"> {
  const { key, id, fields, text } = retry;
  const tries = retry.tries + 1;
  const isLast = reason !== null && tries >= MAX_TRIES;
  const dueMs = Date.now() + FIRST_RETRY_MS * 2 ** (tries - 1);
  const next =
    reason === null || isLast
      ? ""
      : JSON.stringify({ id, entry: JSON.stringify(fields), tries, dueMs });
  const told = isLast ? reason.slice(0, REASON_LENGTH) || "failed" : "";
  const keys = [retriesKey(key, group), deadLetterKey(key)];
  if ((await run<number>(redis, settleScript, keys, [text, next, key, group, told])) === 0) {
    return "settled_before";
  }
  if (reason === null) return "done";
  return isLast ? "parked" : "waiting";
}
