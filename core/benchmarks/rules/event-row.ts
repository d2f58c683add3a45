/** One applied fact for the analytics: ids, codes, times, lane. No personal data and no free text. */
import { type Fact, happenedAtMs } from "#core/events/rules/fact.ts";
import type { Status } from "#core/statuses/rules/status.ts";
import type { LaneFacts } from "./lane.ts";

export interface EventRow {
  /** The fact's identity within its shipment. */
  readonly key: string;
  readonly courier: string;
  /** The courier's own codes. */
  readonly code: string;
  readonly reasonCode: string | null;
  readonly occurredAtMs: number;
  readonly receivedAtMs: number;
  /** Position in its message. */
  readonly messageIndex: number;
  /** Absent where it is not known. */
  readonly messageId?: string;
  /** Mapped; null while the code is not. */
  readonly status: Status | null;
  readonly detail: number;
  readonly terminal: boolean;
  readonly outOfOrder: boolean;
  readonly isReturn: boolean;
  readonly destCap: string | null;
  readonly originCap: string | null;
  readonly weightKg: number | null;
  /** `YYYY-MM-DD`: never changes, so that a corrected row meets the one it replaces. */
  readonly shipDate: string;
  /** Version of the shipment's state: the highest one counts. */
  readonly version: number;
}

type Arrival = Pick<Fact, "occurredAtMs" | "receivedAtMs" | "messageIndex">;

/** @param known facts of the shipment; those received before this one decide whether it came out of order */
export function eventRow(
  lane: LaneFacts,
  fact: Fact,
  known: readonly Arrival[],
  version: number,
): EventRow {
  const { key, event, occurredAtMs, receivedAtMs, messageIndex, mapping } = fact;
  const { courier, destCap, originCap, weightKg, shipDate } = lane;
  return {
    key,
    courier,
    code: event.status.code,
    reasonCode: event.reason?.code ?? null,
    occurredAtMs,
    receivedAtMs,
    messageIndex,
    ...(fact.messageId !== undefined && { messageId: fact.messageId }),
    status: mapping?.status ?? null,
    detail: mapping?.detail ?? 0,
    terminal: mapping?.terminal ?? false,
    outOfOrder: isOutOfOrder(fact, known),
    isReturn: event.isReturn === true,
    destCap,
    originCap,
    weightKg,
    shipDate,
    version,
  };
}

/** A fact is out of order when one that was received before it happened after it. */
export function isOutOfOrder(fact: Arrival, known: readonly Arrival[]): boolean {
  return known.some(
    (one) =>
      happenedAtMs(one) > happenedAtMs(fact) &&
      (one.receivedAtMs - fact.receivedAtMs || one.messageIndex - fact.messageIndex) < 0,
  );
}
