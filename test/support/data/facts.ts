/** Courier events applied to shipments directly, for tests that are not about their way through the logs. */

import type { Live } from "#core/configuration/store/live.ts";
import type { Fact, Mapping } from "#core/events/rules/fact.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { instantOf } from "#core/platform/time/rome-time.ts";
import { fold } from "#core/shipments/rules/fold.ts";
import { type Commit, commitShipments, readHotShipments } from "#core/shipments/store/shipments.ts";
import { mapStatus } from "#core/statuses/rules/map-status.ts";

export interface TestEvent {
  readonly shipmentId: number;
  /** A status code of the courier's catalogue. */
  readonly code: string;
  readonly description?: string;
  /** ISO 8601 with offset. */
  readonly occurredAt?: string;
  readonly place?: string;
  readonly newTrackingNumber?: string;
}

let counter = 0;

/** Applies one event to each of many shipments, in one commit. */
export async function applyEvents(
  { redis, live }: { readonly redis: Redis; readonly live: Live },
  events: readonly TestEvent[],
): Promise<void> {
  const hot = await readHotShipments(
    redis,
    events.map(({ shipmentId }) => shipmentId),
  );
  const commits = events.map((event): Commit => {
    const from = hot.get(event.shipmentId);
    if (!from) throw new Error(`no shipment ${event.shipmentId}`);
    const catalogue = live.configuration().couriers.get(from.meta.courier)?.catalogue;
    const reported = { status: { code: event.code, description: event.code } };
    const fact = factOf(event, catalogue ? mapStatus(catalogue, reported) : null, live.now());
    const folded = fold(from.state, fact);
    if (!folded) throw new Error("the fact is known");
    const { state, change } = folded;
    return { from, state, facts: [fact], changes: [], stamp: change.changed };
  });
  const outcomes = await commitShipments(redis, commits, live.now());
  if (outcomes.includes("conflict")) throw new Error("another commit got ahead");
}

function factOf(event: TestEvent, mapping: Mapping | null, nowMs: number): Fact {
  counter += 1;
  const { code, description = code, occurredAt = new Date(nowMs).toISOString() } = event;
  const { place, newTrackingNumber } = event;
  return {
    key: `fact-${counter}`,
    event: {
      eventId: `event-${counter}`,
      trackingNumber: "any",
      occurredAt,
      status: { code, description },
      ...(place !== undefined && { location: { name: place } }),
      ...(newTrackingNumber !== undefined && { trackingNumberChange: { newTrackingNumber } }),
    },
    occurredAtMs: instantOf(occurredAt),
    receivedAtMs: nowMs,
    messageIndex: 0,
    mapping,
  };
}
