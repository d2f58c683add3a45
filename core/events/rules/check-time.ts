/** The one rule about an event that needs our clock. */
import type { Fault } from "#core/platform/schema/fault.ts";
import { instantOf } from "#core/platform/time/rome-time.ts";
import type { CourierEvent } from "./event.ts";
import { isFarAhead } from "./fact.ts";

/** What is wrong with a valid event's time, judged by our clock: nothing happens tomorrow. */
export function checkTime(event: CourierEvent, nowMs: number): Fault[] {
  const occurredAtMs = instantOf(event.occurredAt);
  if (!isFarAhead({ occurredAtMs, receivedAtMs: nowMs })) return [];
  const message = "More than 24 hours ahead of the service's clock; check the date and the offset.";
  return [{ path: "occurredAt", code: "IN_FUTURE", message }];
}
