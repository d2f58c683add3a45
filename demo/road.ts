/** The parcels on the road and what their couriers tell next: mostly in order, sometimes not, now and then twice. */
import type { CourierEvent } from "#core/events/rules/event.ts";
import { type Consignment, pick } from "./consignment.ts";
import type { DemoCourier } from "./couriers.ts";
import type { Random } from "./journey.ts";
import type { Planner } from "./planner.ts";

const OUT_OF_ORDER_SHARE = 0.08;
const DUPLICATE_SHARE = 0.03;
const STRANGER_SHARE = 0.02;
/** Events that may be sent a second time. */
const RECENT_EVENTS = 200;

export interface SentEvent {
  readonly courier: DemoCourier;
  readonly event: CourierEvent;
}

export interface Road {
  /** Parcels that have still something to tell. */
  readonly length: () => number;
  readonly add: (consignments: readonly Consignment[]) => void;
  /** At most `count` events. */
  readonly next: (count: number) => SentEvent[];
}

export function createRoad(planner: Planner, random: Random): Road {
  const parcels: { readonly courier: DemoCourier; readonly left: CourierEvent[] }[] = [];
  const recent: SentEvent[] = [];

  function nextOfParcel(): SentEvent | null {
    const at = Math.floor(random() * parcels.length);
    const parcel = parcels[at];
    if (!parcel) return null;
    const skipsOne = parcel.left.length > 1 && random() < OUT_OF_ORDER_SHARE;
    const [event] = parcel.left.splice(skipsOne ? 1 : 0, 1);
    if (parcel.left.length === 0) parcels.splice(at, 1);
    return event ? { courier: parcel.courier, event } : null;
  }

  function nextEvent(): SentEvent | null {
    const chance = random();
    if (chance < DUPLICATE_SHARE && recent.length > 0) return pick(recent, random);
    if (chance < DUPLICATE_SHARE + STRANGER_SHARE) return planner.planStranger();
    return nextOfParcel();
  }

  return {
    length: () => parcels.length,
    add(consignments) {
      for (const { courier, events } of consignments) parcels.push({ courier, left: [...events] });
    },
    next(count) {
      const most = Math.min(count, parcels.length);
      const batch = Array.from({ length: most }, nextEvent).filter((one) => one !== null);
      recent.push(...batch);
      recent.splice(0, recent.length - RECENT_EVENTS);
      return batch;
    },
  };
}
