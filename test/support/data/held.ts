/** Shipments in the state that a version left which took any date for the order of events. */
import { type Fact, orderOf } from "#core/events/rules/fact.ts";
import { factKeyOf } from "#core/events/store/seen.ts";
import { instantOf } from "#core/platform/time/rome-time.ts";
import { foldAll } from "#core/shipments/rules/fold.ts";
import { commitShipments, readHotShipments } from "#core/shipments/store/shipments.ts";
import { mapStatus } from "#core/statuses/rules/map-status.ts";
import { event } from "#test/support/clients/courier.ts";
import type { TestRuntime } from "#test/support/product/runtime.ts";

export interface HeldEvent {
  readonly code: string;
  /** ISO 8601 with offset. */
  readonly occurredAt: string;
  readonly receivedAt: string;
}

/** @param events in the order of their receipt; the one that happened last by its own date decides */
export async function hold(
  { redis, live }: Pick<TestRuntime, "redis" | "live">,
  id: number,
  events: readonly HeldEvent[],
): Promise<void> {
  const from = (await readHotShipments(redis, [id])).get(id);
  if (!from) throw new Error(`no shipment ${id}`);
  const { courier, trackingNumber } = from.meta;
  const catalogue = live.configuration().couriers.get(courier)?.catalogue ?? new Map();
  const facts = events.map(({ code, occurredAt, receivedAt }): Fact => {
    const status = { code, description: `text of ${code}` };
    const sent = event({ trackingNumber, status, occurredAt });
    return {
      key: factKeyOf(courier, sent.eventId),
      event: sent,
      messageIndex: 0,
      occurredAtMs: instantOf(occurredAt),
      receivedAtMs: instantOf(receivedAt),
      mapping: mapStatus(catalogue, sent),
    };
  });
  const asOccurred = facts.map((fact) => ({ ...fact, receivedAtMs: fact.occurredAtMs }));
  let before = from.state;
  // In the order of arrival: which pairs were entered depends on it.
  for (const fact of asOccurred) before = foldAll(before, [fact]).state;
  const decisive = facts.find(({ key }) => key === before.last?.by.key);
  if (!decisive?.mapping || !before.last || !before.mapped) throw new Error("no code is mapped");
  const by = orderOf(decisive);
  const state = {
    ...before,
    last: { ...before.last, by },
    mapped: { ...before.mapped, by },
  };
  const commit = { from, state, facts, changes: [], stamp: true };
  const [outcome] = await commitShipments(redis, [commit], live.now());
  if (outcome !== "committed") throw new Error("another commit got ahead");
}
