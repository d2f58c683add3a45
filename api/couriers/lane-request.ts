/** What both courier benchmarks are asked (document 1, "Couriers"): a lane and the couriers to compare on it. */
import { type Static, Type } from "@sinclair/typebox";
import type { DeliveryTimesQuery } from "#analytics/benchmarks.ts";
import type { Caller } from "#api/auth/authenticated.ts";
import { validationFailed } from "#api/error-response.ts";
import { areaOfCap, isItalianCap, weightBand } from "#core/domain/benchmarks/lane.ts";
import { kilograms } from "#core/domain/orders/measure.ts";
import type { Fault } from "#core/domain/schema/fault.ts";
import type { Channel } from "#core/redis/config/configuration.ts";

/** Document 1, "Limits": couriers per benchmark request. */
const COURIERS_PER_REQUEST = 50;

const cap = Type.String({
  pattern: "^\\d{5}$",
  description: "an Italian postal code of 5 digits, such as 00184",
});

export const LaneRequest = Type.Object({
  destCap: cap,
  couriers: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 50 }), { maxItems: COURIERS_PER_REQUEST }),
  ),
  weightKg: Type.Optional(kilograms),
  originCap: Type.Optional(cap),
  detail: Type.Optional(Type.Union([Type.Literal("summary"), Type.Literal("full")])),
});
export type LaneRequest = Static<typeof LaneRequest>;

/**
 * The company's seat is the origin and the channel's shipping-enabled couriers are compared, unless the body says else.
 * @throws {Problem} 422 for a postal code that is not Italian
 */
export function laneQuery(
  { destCap, originCap, weightKg, couriers }: LaneRequest,
  { channel, company }: Caller,
  nowMs: number,
): DeliveryTimesQuery {
  const faults = [...capFaults("destCap", destCap), ...capFaults("originCap", originCap)];
  if (faults.length > 0) throw validationFailed(faults, { destCap, originCap });
  const seat = company.seatPostcode !== null && isItalianCap(company.seatPostcode);
  return {
    destCap,
    originCap: originCap ?? (seat ? company.seatPostcode : null),
    weightKg: weightKg ?? null,
    couriers: couriers ?? shippingCouriers(channel),
    nowMs,
  };
}

function capFaults(path: string, text: string | undefined): Fault[] {
  if (text === undefined || isItalianCap(text)) return [];
  return [{ path, code: "NOT_ALLOWED", message: "The postal code is not an Italian one." }];
}

function shippingCouriers({ couriers }: Channel): string[] {
  return [...couriers.values()].filter((one) => one.shippingEnabled).map(({ code }) => code);
}

/** The head of both answers. */
export function laneView({ destCap, originCap, weightKg }: DeliveryTimesQuery) {
  return {
    destCap,
    originArea: originCap === null ? null : areaOfCap(originCap),
    originCap,
    requestedWeightBand: weightKg === null ? null : weightBand(weightKg),
  };
}
