/**
 * What became of couriers' events that were not ACCEPTED, for 7 days: identifiers and reasons only. Accepted events are found in
 * the analytics, which have a row for each.
 *
 * Lines are appended to texts, one for each day, partition and bucket: once under the event's id and once, together with the
 * others, under the message's. A text costs no memory beside what it says, one command appends what a message has for it, and
 * it expires by itself. A text has a limit, so all of them have.
 */
import type { Redis } from "#core/platform/redis/client.ts";
import { digestOf } from "#core/platform/redis/digest.ts";
import { eventKeys } from "#core/platform/redis/keys.ts";
import { partitionOfDigest, shareOf } from "#core/platform/redis/partitions.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { seenBucket } from "./seen.ts";

const DAY_MS = 86_400_000;
export const OUTCOMES_KEPT_DAYS = limit(
  7,
  "for how long the outcomes of events that were not ACCEPTED are kept",
  "deleted",
);
/** A text of a day is read until that day is 7 days past. */
const TTL_SECONDS = (OUTCOMES_KEPT_DAYS + 1) * 86_400;
/** Over all partitions. */
const BUCKETS = 128;
/** Of one text: with 128 buckets, 2 texts and 9 days 144 MiB in all. */
export const TEXT_BYTES = limit(
  64 * 1024,
  "a text of outcomes of events that were not ACCEPTED",
  "not kept, counted in a metric",
);
/** Resends are many and say little: they are kept until a text is half full. */
export const DUPLICATES_BYTES = limit(
  TEXT_BYTES / 2,
  "a text of outcomes to which those of DUPLICATE events are still added",
  "not kept, counted in a metric",
);
/** Characters of an id that is longer than any valid one. */
const ID_LENGTH = 256;
/** Reasons kept of an event. */
const REASONS = 5;

export type KeptOutcomeName = "DUPLICATE" | "UNKNOWN_TRACKING" | "INVALID";
/** As it stands in a line: `D`, `U`, `I`. */
const NAMES: Readonly<Record<string, KeptOutcomeName>> = {
  D: "DUPLICATE",
  U: "UNKNOWN_TRACKING",
  I: "INVALID",
};

export interface EventOutcome {
  /** Null if it could not be read. */
  readonly eventId: string | null;
  /** Position in its message. */
  readonly messageIndex: number;
  readonly outcome: KeptOutcomeName;
  readonly reasons: readonly string[];
  /** As it was sent. */
  readonly event: unknown;
}

export interface MessageOutcomes {
  readonly courier: string;
  readonly messageId: string;
  readonly receivedAtMs: number;
  readonly outcomes: readonly EventOutcome[];
}

export interface FoundOutcome extends Omit<EventOutcome, "event"> {
  readonly messageId: string;
  readonly receivedAtMs: number;
}

export interface OutcomeQuery {
  readonly courier: string;
  readonly eventId: string | null;
  readonly messageId: string | null;
}

/** @returns how many lines it did not keep, of two for each event */
export type KeepOutcomes = (message: MessageOutcomes) => Promise<number>;

export function outcomeKeeper(redis: Redis): KeepOutcomes {
  /** Of the texts of this day, as this process knows them. */
  const lengths = new Map<string, number>();
  let today = 0;

  return async (message) => {
    const day = dayOf(message.receivedAtMs);
    if (day !== today) lengths.clear();
    today = day;
    const lines = linesOf(message, day);
    let left = lines.length;
    const appending = [...Map.groupBy(lines, ({ key }) => key)].map(async ([key, own]) => {
      const isNew = !lengths.has(key);
      let length = lengths.get(key) ?? 0;
      const fitting = own.filter(({ bytes, limit }) => {
        const fits = length + bytes <= limit;
        if (fits) length += bytes;
        return fits;
      });
      if (fitting.length === 0) return;
      left -= fitting.length;
      // Known before it is written: other messages are kept at the same time.
      lengths.set(key, length);
      // Awaited together: a rejection that nobody awaits ends the process.
      const [appended] = await Promise.all([
        redis.append(key, fitting.map(({ text }) => text).join("")),
        isNew ? redis.expire(key, TTL_SECONDS, "NX") : null,
      ]);
      lengths.set(key, Math.max(lengths.get(key) ?? 0, appended));
    });
    await Promise.all(appending);
    return left;
  };
}

interface Line {
  readonly key: string;
  readonly text: string;
  readonly bytes: number;
  /** Bytes that its text may have with it. */
  readonly limit: number;
}

/** Under the message's id a line for each event, and under the event's id one too. */
function linesOf({ courier, messageId, receivedAtMs, outcomes }: MessageOutcomes, day: number) {
  const byMessage = messageKey(courier, messageId, day);
  return outcomes.flatMap(({ eventId, messageIndex, outcome, reasons }): Line[] => {
    const name = eventId === null ? null : eventId.slice(0, ID_LENGTH).toWellFormed();
    const row = [receivedAtMs, messageIndex, outcome[0], ...reasons.slice(0, REASONS)];
    const text = `${JSON.stringify([courier, messageId, name, ...row])}\n`;
    const bytes = Buffer.byteLength(text);
    const limit = outcome === "DUPLICATE" ? DUPLICATES_BYTES : TEXT_BYTES;
    const line = { text, bytes, limit };
    if (name === null) return [{ ...line, key: byMessage }];
    return [
      { ...line, key: byMessage },
      { ...line, key: eventKey(courier, name, day) },
    ];
  });
}

/**
 * What became of an event, or of the events of a message, in the order received. One text for each day is read, at most 64 KiB
 * and what processes have appended at the same time.
 */
export async function findOutcomes(
  redis: Redis,
  { courier, eventId, messageId }: OutcomeQuery,
  nowMs: number,
): Promise<FoundOutcome[]> {
  const days = Array.from({ length: OUTCOMES_KEPT_DAYS + 1 }, (_, ago) => dayOf(nowMs) - ago);
  const keys = days.map((day) =>
    eventId === null ? messageKey(courier, messageId ?? "", day) : eventKey(courier, eventId, day),
  );
  const texts = await Promise.all(keys.map((key) => redis.get(key)));
  const sinceMs = nowMs - OUTCOMES_KEPT_DAYS * DAY_MS;
  return texts
    .flatMap((text) => (text ?? "").split("\n").slice(0, -1))
    .flatMap((line): FoundOutcome[] => {
      const [of, message, name, receivedAtMs, messageIndex, letter, ...reasons] = JSON.parse(line);
      const outcome = NAMES[letter];
      const isMeant = of === courier && (messageId === null || message === messageId);
      const isOther = eventId !== null && name !== eventId;
      if (!isMeant || isOther || !outcome || receivedAtMs < sinceMs) return [];
      return [{ eventId: name, messageId: message, receivedAtMs, messageIndex, outcome, reasons }];
    });
}

function dayOf(ms: number): number {
  return Math.floor(ms / DAY_MS);
}

function messageKey(courier: string, messageId: string, day: number): string {
  const digest = digestOf(`${courier}\0${messageId}`);
  const partition = partitionOfDigest("e", digest);
  return eventKeys(partition).outcomesByMessage(day, digest.readUInt8(1) % shareOf("e", BUCKETS));
}

function eventKey(courier: string, eventId: string, day: number): string {
  const { partition, bucketBits } = seenBucket(courier, eventId);
  return eventKeys(partition).outcomesById(day, bucketBits % shareOf("e", BUCKETS));
}
