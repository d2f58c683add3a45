/**
 * The inbox of a courier: its latest events that were not ACCEPTED, as it sent them, for as long as their outcomes are kept. A list for
 * each outcome, so that resends push out no refused event.
 */
import { shownEvent } from "#core/events/rules/shown-event.ts";
import { turns } from "#core/platform/process/next-turn.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { digestOf } from "#core/platform/redis/digest.ts";
import { eventKeys } from "#core/platform/redis/keys.ts";
import { partitionOfDigest } from "#core/platform/redis/partitions.ts";
import { limit } from "#core/platform/schema/limit.ts";
import {
  type KeptOutcomeName,
  type MessageOutcomes,
  OUTCOMES_KEPT_DAYS,
} from "./event-outcomes.ts";

export const INBOX_EVENTS = limit(
  1_000,
  "latest events of a courier's inbox for each outcome",
  "the oldest go",
);
/** Of one message, so that a large one costs little behind its answer. */
export const INBOX_OF_MESSAGE = limit(
  100,
  "events of one message that a courier's inbox takes for each outcome",
  "the others are found by their id",
);
const READ_TOGETHER = 100;
const DAY_MS = 86_400_000;
const TTL_SECONDS = (OUTCOMES_KEPT_DAYS + 1) * 86_400;
const NUMBER_LENGTH = 64;

export interface InboxEvent {
  readonly receivedAtMs: number;
  readonly eventId: string | null;
  readonly messageId: string;
  /** Position in its message. */
  readonly place: number;
  readonly trackingNumber: string | null;
  readonly outcome: KeptOutcomeName;
  readonly reasons: readonly string[];
  readonly event: unknown;
}

/** Written together with the lines of the outcomes: one more command for each outcome that a message has. */
export async function keepInInbox(
  redis: Redis,
  { courier, messageId, receivedAtMs, outcomes }: MessageOutcomes,
): Promise<void> {
  const groups = Map.groupBy(outcomes, ({ outcome }) => outcome);
  await Promise.all(
    [...groups].flatMap(([outcome, own]) => {
      const key = inboxKey(courier, outcome);
      // The newest stands first.
      const rows = own.slice(0, INBOX_OF_MESSAGE).map((one) => {
        const { eventId, messageIndex, reasons, event } = one;
        const shape = shownEvent(event);
        const row = [receivedAtMs, messageId, messageIndex, eventId, numberOf(event), reasons];
        return JSON.stringify([...row, shape]);
      });
      return [
        redis.lPush(key, rows),
        redis.lTrim(key, 0, INBOX_EVENTS - 1),
        redis.expire(key, TTL_SECONDS),
      ];
    }),
  );
}

function numberOf(event: unknown): string | null {
  const { trackingNumber = null } = (event ?? {}) as { readonly trackingNumber?: unknown };
  return typeof trackingNumber === "string"
    ? trackingNumber.slice(0, NUMBER_LENGTH).toWellFormed()
    : null;
}

/** Newest first. */
export async function readInbox(
  redis: Redis,
  courier: string,
  outcomes: readonly KeptOutcomeName[],
  nowMs: number,
): Promise<InboxEvent[]> {
  const sinceMs = nowMs - OUTCOMES_KEPT_DAYS * DAY_MS;
  const turn = turns();
  const events: InboxEvent[] = [];
  for (const outcome of outcomes) {
    for (let from = 0; from < INBOX_EVENTS; from += READ_TOGETHER) {
      const key = inboxKey(courier, outcome);
      const rows = await redis.lRange(key, from, from + READ_TOGETHER - 1);
      for (const row of rows) {
        const [receivedAtMs, messageId, place, eventId, trackingNumber, reasons, event] =
          JSON.parse(row);
        if (receivedAtMs < sinceMs) continue;
        const common = { receivedAtMs, messageId, place, eventId, trackingNumber };
        events.push({ ...common, outcome, reasons, event });
      }
      if (rows.length < READ_TOGETHER) break;
      if (turn.due()) await turn.take();
    }
  }
  return events.sort(
    (one, other) =>
      other.receivedAtMs - one.receivedAtMs ||
      (one.messageId < other.messageId ? 1 : one.messageId > other.messageId ? -1 : 0) ||
      other.place - one.place,
  );
}

function inboxKey(courier: string, outcome: KeptOutcomeName): string {
  const partition = partitionOfDigest("e", digestOf(courier));
  return eventKeys(partition).inbox(courier, outcome);
}
