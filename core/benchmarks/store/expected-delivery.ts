/** The expected delivery of a shipment as it is now, from what the analytics counted; null with the reason where there is none. */
import {
  type Expectation,
  expectDelivery,
  stageOf,
} from "#core/benchmarks/rules/expected-delivery.ts";
import { areaOfCap, type LaneFacts, weightBand } from "#core/benchmarks/rules/lane.ts";
import { compareFacts, type Fact, happenedAtMs, orderOf } from "#core/events/rules/fact.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { romeDate, romeIso } from "#core/platform/time/rome-time.ts";
import type { ShipmentState } from "#core/shipments/rules/fold.ts";
import { isTestCourier } from "#core/shipments/rules/test-parcel.ts";
import { type OwnedCell, readStayCells } from "./stay-cells.ts";

const HOUR_MS = 3_600_000;

export const NO_EXPECTATION = [
  "ENDED",
  "RETURNING",
  "TEST_MODE",
  "NO_LANE",
  "NOT_COUNTED_YET",
  "TOO_FEW_DELIVERIES",
  "UNAVAILABLE",
] as const;
export type NoExpectation = (typeof NO_EXPECTATION)[number];

/** A day is `YYYY-MM-DD`. */
export interface ExpectedDelivery extends Expectation {
  /** ISO 8601, a full hour, so that an answer changes no more often than it says something new. */
  readonly asOf: string;
}

export type Expected =
  | { readonly expected: ExpectedDelivery }
  | { readonly expected: null; readonly reason: NoExpectation };

export interface ExpectingShipment {
  readonly lane: LaneFacts;
  readonly state: ShipmentState;
}

/** @param facts in any order */
export async function expectedDeliveryOf(
  redis: Redis,
  { lane, state }: ExpectingShipment,
  facts: readonly Fact[],
  nowMs: number,
): Promise<Expected> {
  const reason = reasonOf(lane, state);
  if (reason !== null) return none(reason);
  const { destCap, courier } = lane;
  if (destCap === null) return none("NO_LANE");
  // Part of the store may be away: the shipment is shown all the same.
  const known = await readStayCells(redis, courier, destCap).catch(() => "away" as const);
  if (known === "away") return none("UNAVAILABLE");
  if (known === null) return none("NOT_COUNTED_YET");
  const inOrder = facts.toSorted((one, other) => compareFacts(orderOf(one), orderOf(other)));
  const steps = inOrder.map((fact) => ({
    status: fact.mapping?.status ?? null,
    atMs: happenedAtMs(fact),
  }));
  const cells = known.cells.filter((cell) => isOwn(cell, lane));
  const today = romeDate(nowMs);
  const expectation = expectDelivery(cells, { ...stageOf(lane.shipDate, steps), today });
  if (!expectation) return none("TOO_FEW_DELIVERIES");
  const asOf = romeIso(known.asOfMs - (known.asOfMs % HOUR_MS));
  return { expected: { ...expectation, asOf } };
}

function reasonOf(lane: LaneFacts, { mapped, isReturn }: ShipmentState): NoExpectation | null {
  if (isTestCourier(lane.courier)) return "TEST_MODE";
  const status = mapped?.value.status;
  if (mapped?.by.terminal || status === "DELIVERED" || status === "RETURNED") return "ENDED";
  return isReturn ? "RETURNING" : null;
}

function none(reason: NoExpectation): Expected {
  return { expected: null, reason };
}

/** Of the shipment's own origin and weight, as the grain asks. */
function isOwn({ grain, origin, band }: OwnedCell, { originCap, weightKg }: LaneFacts): boolean {
  if (grain.endsWith("_weight") && (weightKg === null || weightBand(weightKg) !== band))
    return false;
  if (grain.startsWith("origin_cap")) return originCap === origin;
  return !grain.startsWith("area_cap") || (originCap !== null && areaOfCap(originCap) === origin);
}
