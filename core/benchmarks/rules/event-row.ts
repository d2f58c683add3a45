/** One applied fact for the analytics: ids, codes, times, lane. No personal data and no free text. */
import { type Fact, happenedAtMs } from "#core/events/rules/fact.ts";
import { instantOf, romeDate } from "#core/platform/time/rome-time.ts";
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
  /** Day in Europe/Rome on which the delivery is estimated; absent = the event estimates none. */
  readonly estimatedOn?: string;
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
    ...estimateOf(event.delivery),
    version,
  };
}

/** Of a window its end: a delivery within it is on time. */
function estimateOf(delivery: Fact["event"]["delivery"]): Pick<EventRow, "estimatedOn"> {
  const { estimatedDeliveryDate: day, estimatedDeliveryWindow: window } = delivery ?? {};
  const end = window?.to ?? window?.from;
  const estimatedOn = day ?? (end === undefined ? undefined : romeDate(instantOf(end)));
  return estimatedOn === undefined ? {} : { estimatedOn };
}

/** A fact is out of order when one that was received before it happened after it. */
export function isOutOfOrder(fact: Arrival, known: readonly Arrival[]): boolean {
  return known.some(
    (one) =>
      happenedAtMs(one) > happenedAtMs(fact) &&
      (one.receivedAtMs - fact.receivedAtMs || one.messageIndex - fact.messageIndex) < 0,
  );
}
