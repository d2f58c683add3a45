/** Deals the demo's consignments: numbers that no run gives twice, couriers, channels and destinations at random. */
import type { CourierEvent } from "#core/events/rules/event.ts";
import { type Consignment, type ConsignmentInput, pick, planConsignment } from "./consignment.ts";
import { DEMO_COURIERS, type DemoCourier } from "./couriers.ts";
import { DEMO_CHANNELS } from "./demo-setup.ts";
import type { Random } from "./journey.ts";
import { PLACES } from "./places.ts";

/** More shipments than a run registers in a second: a later start begins past the numbers of an earlier one. */
const NUMBERS_PER_SECOND = 1_000;
/** June 2026, so that numbers keep to 11 digits. */
const NUMBERS_SINCE_SECONDS = 1_780_000_000;
/** Parcels in the stream have ended their journey at most that many working days ago. */
const STREAM_DAYS_AGO = 3;

export type Choice = Partial<Omit<ConsignmentInput, "number">>;

export interface Planner {
  readonly plan: (choice: Choice) => Consignment;
  /** An event of a parcel that nobody registers: it belongs to somebody else's merchant. */
  readonly planStranger: () => { readonly courier: DemoCourier; readonly event: CourierEvent };
}

export function createPlanner(random: Random, now: () => number): Planner {
  const startedSeconds = Math.floor(Date.now() / 1_000);
  let number = (startedSeconds - NUMBERS_SINCE_SECONDS) * NUMBERS_PER_SECOND;

  function plan(choice: Choice): Consignment {
    number += 1;
    const input = {
      courier: pick(DEMO_COURIERS, random),
      channel: pick(DEMO_CHANNELS, random),
      destination: pick(PLACES, random),
      daysAgo: 1 + Math.floor(random() * STREAM_DAYS_AGO),
      mustArrive: false,
      ...choice,
    };
    return planConsignment({ ...input, number }, random, now());
  }

  return {
    plan,
    planStranger() {
      const { courier, events } = plan({});
      return { courier, event: pick(events, random) };
    },
  };
}
