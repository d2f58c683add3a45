/** Finds tracking number changes that point to the number of another live shipment, and reports them to the operators. */

import type { LoggedEvent } from "#core/events/store/event-log.ts";
import { type NumberConflict, noteConflicts } from "#core/events/store/number-conflicts.ts";
import { listed, ownReferences, resolveReferences } from "#core/events/store/references.ts";
import { numberConflicts } from "#core/platform/process/metrics.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { trackingReference } from "#core/platform/redis/keys.ts";
import { type HotShipment, readHotShipments } from "#core/shipments/store/shipments.ts";

export interface ConflictDeps {
  readonly redis: Redis;
  /** Called once for each conflict. */
  readonly onConflict?: (conflict: NumberConflict) => void;
}

interface Arrived {
  readonly shipment: HotShipment;
  readonly events: ReadonlyArray<Pick<LoggedEvent, "event" | "receivedAtMs">>;
}

/**
 * Records conflicts of new numbers that have been registered. A shipment that the announcing event itself means is no
 * conflict, nor is one whose journey has ended.
 */
export async function findConflicts(
  { redis, onConflict = () => {} }: ConflictDeps,
  arrived: readonly Arrived[],
): Promise<void> {
  const changes = arrived.flatMap(({ shipment, events }) =>
    events.flatMap(({ event, receivedAtMs }) => {
      const number = event.trackingNumberChange?.newTrackingNumber;
      if (number === undefined) return [];
      const { courier } = shipment.meta;
      const own = listed(ownReferences(courier, event));
      return [
        {
          shipment,
          event,
          receivedAtMs,
          number,
          own,
          reference: trackingReference(courier, number),
        },
      ];
    }),
  );
  if (changes.length === 0) return;
  const candidates = await resolveReferences(
    redis,
    changes.flatMap(({ own, reference }) => [...own, reference]),
  );
  const found = changes.flatMap((change) => {
    const meant = new Set(change.own.flatMap(({ key }) => idsOf(candidates.get(key))));
    const others = idsOf(candidates.get(change.reference.key)).filter(
      (id) => id !== change.shipment.id && !meant.has(id),
    );
    return others.length === 0 ? [] : [{ ...change, others }];
  });
  if (found.length === 0) return;
  const hot = await readHotShipments(redis, [...new Set(found.flatMap(({ others }) => others))]);
  const conflicts = found.flatMap(({ shipment, event, receivedAtMs, number, others }) => {
    const live = others.filter((id) => isLive(hot.get(id)));
    if (live.length === 0) return [];
    return [
      {
        courier: shipment.meta.courier,
        eventId: event.eventId,
        shipmentId: shipment.id,
        newTrackingNumber: number,
        otherShipmentIds: live,
        atMs: receivedAtMs,
      },
    ];
  });
  for (const conflict of await noteConflicts(redis, conflicts)) {
    numberConflicts.inc({ courier: conflict.courier });
    onConflict(conflict);
  }
}

function idsOf(candidates: ReadonlyArray<{ readonly shipmentId: number }> = []): number[] {
  return candidates.map(({ shipmentId }) => shipmentId);
}

function isLive(shipment: HotShipment | undefined): boolean {
  return shipment !== undefined && !shipment.state.mapped?.by.terminal;
}
