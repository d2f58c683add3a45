/** What both courier benchmarks are asked (document 1, "Couriers"): a lane and the couriers to compare on it. */

import { type Static, Type } from "@sinclair/typebox";
import type { DeliveryTimesQuery } from "#analytics/benchmarks.ts";
import type { Caller } from "#api/auth/authenticated.ts";
import { ProblemDocument, validationFailed } from "#api/http/error-response.ts";
import { jsonBody } from "#api/http/read-json.ts";
import {
  areaOfCap,
  GRAINS,
  isItalianCap,
  WEIGHT_BANDS,
  weightBand,
} from "#core/benchmarks/rules/lane.ts";
import type { Channel } from "#core/configuration/store/configuration.ts";
import { kilograms } from "#core/merchants/rules/measure.ts";
import type { Rule } from "#core/platform/openapi/operation.ts";
import type { Fault } from "#core/platform/schema/fault.ts";
import { nullableText } from "#core/platform/schema/nullable.ts";

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

const nullableInteger = Type.Union([Type.Integer(), Type.Null()]);
export const courierFields = {
  courierCode: Type.String(),
  sampleSize: nullableInteger,
  level: Type.Union([...GRAINS.map((grain) => Type.Literal(grain)), Type.Null()], {
    description: `grain of the data, finest first: ${GRAINS.join(", ")}`,
  }),
  weightBand: nullableText,
  status: Type.Union([Type.Literal("ok"), Type.Literal("insufficient_data")]),
};

export const Interval = Type.Object({ low: Type.Integer(), high: Type.Integer() });
/** Of a full answer. */
export const interval = Type.Optional(
  Type.Union([Interval, Type.Null()], { description: "95 % confidence; with detail=full" }),
);

/** The head of both answers. */
export const laneFields = {
  destCap: Type.String(),
  originArea: Type.Union([
    Type.Literal("NORD"),
    Type.Literal("CENTRO"),
    Type.Literal("SUD"),
    Type.Null(),
  ]),
  originCap: nullableText,
  requestedWeightBand: Type.Union(
    [...WEIGHT_BANDS.map((band) => Type.Literal(band)), Type.Null()],
    {
      description: "null without weightKg",
    },
  ),
  asOf: Type.Optional(
    Type.String({
      description: "ISO 8601; with detail=full: events accepted before it count in the figures",
    }),
  ),
};

export const EXAMPLE_LANE = {
  destCap: "00184",
  originArea: "NORD",
  originCap: "20121",
  requestedWeightBand: "1-3",
} as const;

export const BenchmarksUnavailable = Type.Object({
  ...ProblemDocument.properties,
  message: Type.String({ description: "the same as `detail`, for readers of the shorter shape" }),
});

/** What the descriptions of both calls share. */
export const laneOperation = {
  rules: ["destCap", "originCap"].map(
    (path): Rule => ({
      path,
      code: "NOT_ALLOWED",
      rule: "the postal code of an Italian place",
    }),
  ),
  body: jsonBody(LaneRequest, {
    destCap: "00184",
    couriers: ["GLS_ITA", "BRT_ITA"],
    weightKg: 2.5,
  }),
  errors: ["BENCHMARKS_UNAVAILABLE" as const],
  problems: { statuses: [503], schema: BenchmarksUnavailable },
};

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
