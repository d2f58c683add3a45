/** A fact: one courier event as a shipment remembers it (document 2: "one fact about one parcel at one time"). */

import { limit } from "#core/platform/schema/limit.ts";
import type { StatusPair } from "#core/statuses/rules/status.ts";
import type { CourierEvent } from "./event.ts";

/** What the courier's catalogue made of a status code; null where the code is not mapped. */
export interface Mapping extends StatusPair {
  readonly terminal: boolean;
}

export interface Fact {
  /** Short hash of (courier, eventId): the fact's identity within its shipment. */
  readonly key: string;
  readonly event: StoredEvent;
  /** UTC milliseconds of `event.occurredAt`. */
  readonly occurredAtMs: number;
  /** Our clock when the message was processed, and the event's index in it: the order among equal `occurredAt`. */
  readonly receivedAtMs: number;
  readonly messageIndex: number;
  readonly mapping: Mapping | null;
  /** Of the message that brought it; absent where it was parked. */
  readonly messageId?: string;
  /** Of the span that applies it: goes on with the change, and is not kept with the shipment. */
  readonly traceparent?: string;
  /** Released from the store of parked events, with the little that was kept; the event in full takes its place. */
  readonly parked?: true;
  /** Our clock when it was last accepted again, its eventId having been forgotten: it changed nothing, and was counted. */
  readonly againMs?: number;
}

/** A parked event keeps identifiers (an announced number is one), status, occurredAt and location.name; it is a valid event still. */
export type StoredEvent = CourierEvent;

/** Document 2, "Unknown-tracking set-aside": what is kept of an event whose parcel is unknown. */
export function minimalEvent(event: CourierEvent): CourierEvent {
  const { eventId, trackingNumber, externalId, senderAccount, occurredAt, status } = event;
  const { location, trackingNumberChange } = event;
  return {
    eventId,
    ...(trackingNumber !== undefined && { trackingNumber }),
    ...(externalId !== undefined && { externalId }),
    ...(senderAccount !== undefined && { senderAccount }),
    occurredAt,
    status,
    ...(location?.name !== undefined && { location: { name: location.name } }),
    ...(trackingNumberChange && {
      trackingNumberChange: { newTrackingNumber: trackingNumberChange.newTrackingNumber },
    }),
  };
}

/** The event as shipments of several companies get it. What carries an estimate carries it still. */
export function withoutPersonalData(event: CourierEvent): CourierEvent {
  const { pickupPoint, recipientActionUrl, delivery, ...rest } = event;
  if (!delivery) return rest;
  const { deliveredTo, signedBy, podUrl, ...kept } = delivery;
  return { ...rest, delivery: kept };
}

/** How far ahead of its receipt an event may be dated: senders mix up zones. What is further ahead is INVALID. */
export const AHEAD_MS = limit(
  86_400_000,
  "`occurredAt` ahead of an event's receipt",
  "INVALID, `IN_FUTURE`",
);

/** Nothing happened after it was received: where an event stands among others, and what is computed with its time. */
export function happenedAtMs({ occurredAtMs, receivedAtMs }: Moment): number {
  return Math.min(occurredAtMs, receivedAtMs);
}

export type Moment = Pick<FactOrder, "occurredAtMs" | "receivedAtMs">;

export function isAhead({ occurredAtMs, receivedAtMs }: Moment): boolean {
  return occurredAtMs > receivedAtMs;
}

/** Further ahead than is accepted: taken by a version that had no limit. */
export function isFarAhead({ occurredAtMs, receivedAtMs }: Moment): boolean {
  return occurredAtMs - receivedAtMs > AHEAD_MS;
}

/**
 * Total order of facts: by the earlier one of occurredAt and receivedAt, so that an event ahead of its time cannot stand in
 * front of what is received after it, then by occurredAt; at the same instant a terminal status beats a non-terminal one, then
 * the later received wins. The key settles what is left, so that no two facts are ever equal.
 */
export function compareFacts(one: FactOrder, other: FactOrder): number {
  return (
    happenedAtMs(one) - happenedAtMs(other) ||
    one.occurredAtMs - other.occurredAtMs ||
    Number(one.terminal) - Number(other.terminal) ||
    one.receivedAtMs - other.receivedAtMs ||
    one.messageIndex - other.messageIndex ||
    (one.key < other.key ? -1 : one.key > other.key ? 1 : 0)
  );
}

export interface FactOrder {
  readonly occurredAtMs: number;
  readonly terminal: boolean;
  readonly receivedAtMs: number;
  readonly messageIndex: number;
  readonly key: string;
}

export function orderOf(fact: Fact): FactOrder {
  const { occurredAtMs, receivedAtMs, messageIndex, key, mapping } = fact;
  return { occurredAtMs, terminal: mapping?.terminal ?? false, receivedAtMs, messageIndex, key };
}
