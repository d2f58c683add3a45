/**
 * Dead letters: log entries that a group could not process. They stand beside their log until somebody drives them again,
 * and then wait for their own group alone (`retries.ts`), so that no other group sees them twice.
 */
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import {
  AUDIT_LOG,
  attemptLogs,
  changeLogs,
  deadLetterKey,
  eventKeys,
  eventLogs,
  logCountsKey,
  redrivenKey,
  retriesKey,
  retryAgesKey,
} from "#core/platform/redis/keys.ts";
import { limit } from "#core/platform/schema/limit.ts";
import discardSource from "./discard.lua" with { type: "text" };
import { compareIds } from "./log-entry.ts";
import redriveSource from "./redrive.lua" with { type: "text" };

const redriveScript = script(redriveSource);
const discardScript = script(discardSource);

/** Of the ledger of event partitions. */
export const DISCARDED_FIELD = "discarded";

/** Limit of one call: some seconds of work. */
const REDRIVEN_AT_ONCE = limit(
  10_000,
  "dead letters redriven by one call",
  "the answer says how many remain",
);
/** Letters read and redriven together. */
const PER_STEP = 100;
/** What was driven again is remembered this long, so that a repeated call is answered the same. */
const REMEMBERED_MS = 30 * 86_400_000;

const allLogs = (): ReadonlyArray<readonly [name: string, key: string]> => [
  ...eventLogs().map((key, n) => [`e${n}`, key] as const),
  ...changeLogs().map((key, n) => [`k${n}`, key] as const),
  ...attemptLogs().map((key, n) => [`a${n}`, key] as const),
  ["p0", AUDIT_LOG],
];

export interface DeadLetter {
  /** Tells its log: `e3-<stream id>`. */
  readonly id: string;
  /** Key of the log it stood in, and its id there. */
  readonly log: string;
  readonly entryId: string;
  readonly group: string;
  readonly reason: string;
  readonly fields: Readonly<Record<string, string>>;
  /** Redis clock, UTC milliseconds. */
  readonly atMs: number;
}

/** One page over all logs, the newest first. @param before the id where the page before ended */
export async function listDeadLetters(
  redis: Redis,
  before: string | null,
  limit: number,
): Promise<{ readonly letters: readonly DeadLetter[]; readonly next: string | null }> {
  const end = before === null ? null : parseLetterId(before);
  const perLog = await Promise.all(
    allLogs().map(async ([name, key]) => {
      // Letters of one instant stand in the order of their logs' names: those after the cursor's include it once more.
      const isAfter = end !== null && name > end.name;
      const from = end === null ? "+" : isAfter ? end.streamId : `(${end.streamId}`;
      const rows = await redis.xRevRange(deadLetterKey(key), from, "-", { COUNT: limit });
      return (rows ?? []).map(({ id, message }) => letterOf(name, String(id), message));
    }),
  );
  const letters = perLog.flat().sort(newestFirst).slice(0, limit);
  return { letters, next: letters.length < limit ? null : (letters.at(-1)?.id ?? null) };
}

function newestFirst(one: DeadLetter, other: DeadLetter): number {
  const [first, second] = [parseLetterId(one.id), parseLetterId(other.id)];
  if (!first || !second) return 0;
  return compareIds(second.streamId, first.streamId) || (first.name < second.name ? -1 : 1);
}

function letterOf(
  name: string,
  streamId: string,
  message: Readonly<Record<string, string>>,
): DeadLetter {
  const { log = "", group = "", id = "", reason = "", entry = "{}" } = message;
  return {
    id: `${name}-${streamId}`,
    log,
    group,
    reason,
    entryId: id,
    fields: JSON.parse(entry),
    atMs: Number.parseInt(streamId, 10),
  };
}

/** Null when the text is no id of a dead letter. */
export function parseLetterId(
  letterId: string,
): { readonly name: string; readonly key: string; readonly streamId: string } | null {
  const [, name = "", streamId = ""] = /^([ekap]\d{1,3})-(\d{1,16}-\d{1,16})$/.exec(letterId) ?? [];
  const [, key] = allLogs().find(([known]) => known === name) ?? [];
  return key === undefined ? null : { name, key, streamId };
}

/** "redriven" also when it was before. */
export async function redriveDeadLetter(
  redis: Redis,
  letterId: string,
  nowMs: number,
): Promise<"redriven" | "not_found"> {
  const parsed = parseLetterId(letterId);
  if (!parsed) return "not_found";
  const { key, streamId } = parsed;
  const [letter] = (await redis.xRange(deadLetterKey(key), streamId, streamId)) ?? [];
  // A letter that was already redriven no longer has a known group, and needs none.
  const group = letter?.message["group"] ?? "";
  const keys = [deadLetterKey(key), redrivenKey(key)];
  keys.push(retriesKey(key, group), retryAgesKey(key, group));
  const args = [streamId, group, ...[nowMs, nowMs - REMEMBERED_MS].map(String)];
  return (await run<number>(redis, redriveScript, keys, args)) === 0 ? "not_found" : "redriven";
}

/**
 * Deletes a letter for good. An event among them never becomes part of its shipment, so the ledger counts it.
 * @returns what it was; null if there is none
 */
export async function discardDeadLetter(
  redis: Redis,
  letterId: string,
): Promise<DeadLetter | null> {
  const parsed = parseLetterId(letterId);
  if (!parsed) return null;
  const { name, key, streamId } = parsed;
  const [letter] = (await redis.xRange(deadLetterKey(key), streamId, streamId)) ?? [];
  if (!letter) return null;
  const isEvent = name.startsWith("e");
  const ledger = isEvent ? eventKeys(Number(name.slice(1))).ledger : logCountsKey(key);
  const args = [streamId, isEvent ? DISCARDED_FIELD : ""];
  const discarded = await run<number>(redis, discardScript, [deadLetterKey(key), ledger], args);
  return discarded === 1 ? letterOf(name, streamId, letter.message) : null;
}

export interface RedrivenAll {
  readonly redriven: number;
  /** Dead letters that exist now: beyond the limit, or new in the meantime. */
  readonly remaining: number;
}

/**
 * Redrives the dead letters of all logs, the oldest of each first, but none that is new in the meantime. If it is
 * interrupted or repeated, it continues with what is left.
 * @param limit of this call
 */
export async function redriveAllDeadLetters(
  redis: Redis,
  nowMs: number,
  limit = REDRIVEN_AT_ONCE,
): Promise<RedrivenAll> {
  const newest = await Promise.all(
    allLogs().map(([, key]) => redis.xRevRange(deadLetterKey(key), "+", "-", { COUNT: 1 })),
  );
  let redriven = 0;
  for (const [at, [name, key]] of allLogs().entries()) {
    const end = newest[at]?.[0]?.id;
    // What cannot be driven again stays where it is, and is passed over.
    let start = "-";
    while (end !== undefined && redriven < limit) {
      const count = Math.min(PER_STEP, limit - redriven);
      const rows = await redis.xRange(deadLetterKey(key), start, String(end), { COUNT: count });
      const last = rows?.at(-1);
      if (!rows || !last) break;
      start = `(${String(last.id)}`;
      const ids = rows.map(({ id }) => `${name}-${String(id)}`);
      const outcomes = await Promise.all(ids.map((id) => redriveDeadLetter(redis, id, nowMs)));
      redriven += outcomes.filter((outcome) => outcome === "redriven").length;
    }
  }
  const left = await Promise.all(allLogs().map(([, key]) => redis.xLen(deadLetterKey(key))));
  return { redriven, remaining: left.reduce((sum, count) => sum + count, 0) };
}
