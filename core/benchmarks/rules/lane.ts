/** Lanes of the courier benchmarks (document 1, "Couriers"): areas, weight bands, lead and transit days. */

import { happenedAtMs } from "#core/events/rules/fact.ts";
import { addYears, daysBetween, romeDate } from "#core/platform/time/rome-time.ts";
import { attemptsOf, type ShipmentState } from "#core/shipments/rules/fold.ts";
import { capPrefixOf, type OriginArea } from "./cap-prefix.ts";

export function isItalianCap(text: string): boolean {
  return capPrefixOf(text) !== null;
}

/** Area of an Italian postal code by its prefix; null for no Italian code. */
export function areaOfCap(cap: string): OriginArea | null {
  return capPrefixOf(cap)?.area ?? null;
}

/** Upper bounds of the weight bands in kg; a weight on a bound belongs to the lower band. */
const BAND_BOUNDS_KG = [1, 3, 5, 10, 20, 30, 50] as const;
export const WEIGHT_BANDS = [
  "0-1",
  "1-3",
  "3-5",
  "5-10",
  "10-20",
  "20-30",
  "30-50",
  "50+",
] as const;
export type WeightBand = (typeof WEIGHT_BANDS)[number];

export function weightBand(weightKg: number): WeightBand {
  return WEIGHT_BANDS[BAND_BOUNDS_KG.findIndex((bound) => weightKg <= bound)] ?? "50+";
}

/** Grains of a lane from finest to coarsest; each contains the destination CAP. */
export const GRAINS = [
  "origin_cap_dest_weight",
  "origin_cap_dest",
  "area_cap_weight",
  "cap_weight",
  "area_cap",
  "cap",
] as const;
export type Grain = (typeof GRAINS)[number];

/** Cells with a smaller sample are suppressed (document 1, "Limits"). */
export const MIN_SAMPLE = 20;

/** First day that counts (document 1, "Limits": last 12 months): the same day a year before, or the last of its month. */
export function windowStart(nowMs: number): string {
  return addYears(romeDate(nowMs), -1);
}

/** What a shipment brings to its lane from its creation. */
export interface LaneFacts {
  readonly courier: string;
  /** `YYYY-MM-DD`. */
  readonly shipDate: string;
  /** Null where the address is not Italian or has no valid CAP: such a shipment is in no lane. */
  readonly destCap: string | null;
  readonly originCap: string | null;
  readonly weightKg: number | null;
  /** `YYYY-MM-DD` that the merchant planned (`planning.deliveryDate`); absent = none. */
  readonly plannedOn?: string;
}

/**
 * Calendar days of Europe/Rome from the ship date to the delivery; 0 if it was delivered before, and then it is not
 * evidence.
 */
export function leadDays(shipDate: string, deliveredAtMs: number): number {
  return Math.max(0, daysBetween(shipDate, romeDate(deliveredAtMs)));
}

/** Calendar days of Europe/Rome from the first departure to the delivery; null without a departure before it. */
export function transitDays(departedAtMs: number | null, deliveredAtMs: number): number | null {
  if (departedAtMs === null || departedAtMs > deliveredAtMs) return null;
  return daysBetween(romeDate(departedAtMs), romeDate(deliveredAtMs));
}

/** One delivered shipment for the benchmarks, or the withdrawal of it when a later fact says otherwise. */
export interface LaneRow {
  readonly courier: string;
  readonly destCap: string;
  readonly originCap: string | null;
  readonly weightKg: number | null;
  readonly shipDate: string;
  /** `YYYY-MM-DD` in Europe/Rome. */
  readonly deliveredOn: string;
  readonly leadDays: number;
  readonly transitDays: number | null;
  readonly attempts: number;
  readonly exceptions: number;
  readonly isReturn: boolean;
  /** As in `LaneFacts`. */
  readonly plannedOn?: string;
  /** Version of the shipment's state: the highest one counts. */
  readonly version: number;
  readonly removed: boolean;
}

/**
 * The benchmark row of a shipment after a commit: its delivery, the withdrawal of an earlier one, or null when it
 * never was delivered or its destination is in no lane.
 */
export function laneRow(
  lane: LaneFacts,
  before: ShipmentState,
  after: ShipmentState,
  version: number,
): LaneRow | null {
  const delivered = deliveredAtMs(after) ?? deliveredAtMs(before);
  if (delivered === null || lane.destCap === null) return null;
  return {
    courier: lane.courier,
    destCap: lane.destCap,
    originCap: lane.originCap,
    weightKg: lane.weightKg,
    shipDate: lane.shipDate,
    deliveredOn: romeDate(delivered),
    leadDays: leadDays(lane.shipDate, delivered),
    transitDays: transitDays(after.departedAtMs, delivered),
    // The delivery is an attempt too, also of a courier that numbers none.
    attempts: Math.max(attemptsOf(after), after.failedAttempts + 1),
    exceptions: after.exceptions,
    isReturn: after.isReturn,
    ...(lane.plannedOn !== undefined && { plannedOn: lane.plannedOn }),
    version,
    removed: deliveredAtMs(after) === null,
  };
}

function deliveredAtMs({ mapped }: ShipmentState): number | null {
  return mapped?.value.status === "DELIVERED" ? happenedAtMs(mapped.by) : null;
}
