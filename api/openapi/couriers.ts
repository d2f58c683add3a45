/** The courier benchmarks in the interface description. */
import { Type } from "@sinclair/typebox";
import { LaneRequest } from "#api/couriers/lane-request.ts";
import { GRAINS, WEIGHT_BANDS } from "#core/domain/benchmarks/lane.ts";
import { nullableNumber, nullableText } from "#core/domain/schema/nullable.ts";
import { ERROR_HEADERS, ProblemDocument } from "./errors.ts";
import { type Answer, nullableInteger, type Operation, type Rule } from "./operation.ts";

const lane = {
  destCap: Type.String(),
  originArea: Type.Union([Type.String(), Type.Null()], { description: "NORD, CENTRO or SUD" }),
  originCap: nullableText,
  requestedWeightBand: Type.Union([Type.String(), Type.Null()], {
    description: `null without weightKg; else one of ${WEIGHT_BANDS.join(", ")}`,
  }),
};
const asOf = Type.Optional(
  Type.String({
    description: "ISO 8601; with detail=full: events accepted before it count in the figures",
  }),
);
const interval = Type.Optional(
  Type.Union([Type.Object({ low: Type.Integer(), high: Type.Integer() }), Type.Null()], {
    description: "95 % confidence; with detail=full",
  }),
);
const level = Type.Union([Type.String(), Type.Null()], {
  description: `grain of the data, finest first: ${GRAINS.join(", ")}`,
});
const status = Type.Union([Type.Literal("ok"), Type.Literal("insufficient_data")]);

const DeliveryTimes = Type.Object({
  ...lane,
  asOf,
  best: Type.Optional(
    Type.Union([
      Type.Object({
        courierCode: Type.String(),
        leadMedian: nullableInteger,
        leadMean: nullableNumber,
        transitMedian: nullableInteger,
        transitMean: nullableNumber,
        sampleSize: Type.Integer(),
      }),
      Type.Null(),
    ]),
  ),
  ranking: Type.Array(
    Type.Object({
      position: nullableInteger,
      courierCode: Type.String(),
      status: Type.Optional(status),
      level: Type.Optional(level),
      weightBand: Type.Optional(nullableText),
      leadMedian: nullableInteger,
      leadMean: Type.Optional(nullableNumber),
      leadP90: Type.Optional(nullableInteger),
      transitMedian: nullableInteger,
      transitMean: Type.Optional(nullableNumber),
      transitP90: Type.Optional(nullableInteger),
      sampleSize: nullableInteger,
      transitSampleSize: Type.Optional(nullableInteger),
      leadMedianInterval: interval,
      transitMedianInterval: interval,
    }),
  ),
});

const score = Type.Union([Type.Number(), Type.Null()], { description: "0 to 100" });

const EfficiencyIndex = Type.Object({
  ...lane,
  asOf,
  ranking: Type.Array(
    Type.Object({
      rank: nullableInteger,
      courierCode: Type.String(),
      status,
      index: score,
      speed: score,
      consistency: score,
      reliability: score,
      basis: Type.Union([Type.Literal("transit"), Type.Literal("lead"), Type.Null()]),
      level,
      weightBand: nullableText,
      sampleSize: nullableInteger,
      medianInterval: interval,
    }),
  ),
});

const BenchmarksUnavailable = Type.Object({
  ...ProblemDocument.properties,
  message: Type.String({ description: "the same as `detail`, for readers of the shorter shape" }),
});

const away: Answer = {
  description: "BENCHMARKS_UNAVAILABLE or STORE_UNAVAILABLE: try again after Retry-After.",
  headers: {
    "Retry-After": "Seconds.",
    ...ERROR_HEADERS,
  },
  mediaType: "application/problem+json",
  isErrorBodyToo: true,
  codes: ["BENCHMARKS_UNAVAILABLE", "STORE_UNAVAILABLE"],
  content: {
    name: "BenchmarksUnavailable",
    schema: BenchmarksUnavailable,
    example: {
      type: "/v2/errors#BENCHMARKS_UNAVAILABLE",
      title: "Service Unavailable",
      status: 503,
      code: "BENCHMARKS_UNAVAILABLE",
      detail: "Benchmarks cannot be computed just now.",
      message: "Benchmarks cannot be computed just now.",
    },
  },
};

const LANE_RULES: readonly Rule[] = ["destCap", "originCap"].map((path) => ({
  path,
  code: "NOT_ALLOWED",
  rule: "the postal code of an Italian place",
}));

const request = { destCap: "00184", couriers: ["GLS_ITA", "BRT_ITA"], weightKg: 2.5 };
const head = {
  destCap: "00184",
  originArea: "NORD",
  originCap: "20121",
  requestedWeightBand: "1-3",
};

export const COURIER_OPERATIONS: readonly Operation[] = [
  {
    id: "readDeliveryTimes",
    method: "post",
    path: "/v2/couriers/delivery-times",
    tag: "Couriers",
    summary: "Delivery times of couriers on a lane",
    description: "Anonymous, over the whole network, calendar days of the last 12 months.",
    scope: "delivery-times:read",
    rules: LANE_RULES,
    body: { name: "LaneRequest", schema: LaneRequest, example: request },
    answers: {
      200: {
        description: "Couriers with data, fastest first.",
        content: {
          name: "DeliveryTimes",
          schema: DeliveryTimes,
          example: {
            ...head,
            best: {
              courierCode: "GLS_ITA",
              leadMedian: 2,
              leadMean: 2.3,
              transitMedian: 1,
              transitMean: 1.2,
              sampleSize: 140,
            },
            ranking: [
              {
                position: 1,
                courierCode: "GLS_ITA",
                leadMedian: 2,
                transitMedian: 1,
                sampleSize: 140,
              },
            ],
          },
        },
      },
      503: away,
    },
    errors: [400, 422],
  },
  {
    id: "readEfficiencyIndex",
    method: "post",
    path: "/v2/couriers/efficiency-index",
    tag: "Couriers",
    summary: "Couriers of a lane by their efficiency index",
    description:
      "The index compares a courier with the whole network on the lane, from 0 to 100; 50 is as good as the network. It is 0.4 speed + 0.2 consistency + 0.4 reliability. Speed is the chance that its delivery takes fewer days than one of the network (transit days if 20 are known, else lead days), consistency the same for the distance from the median, and reliability 100 n / (n + c) with the shares of deliveries with a second attempt or an exception: n of the network, c of the courier and 20 deliveries of the network. Fewer than 20 deliveries are `insufficient_data`.",
    scope: "efficiency-index:read",
    rules: LANE_RULES,
    body: { name: "LaneRequest", schema: LaneRequest, example: request },
    answers: {
      200: {
        description: "Ranked couriers best first, then those without enough data.",
        content: {
          name: "EfficiencyIndex",
          schema: EfficiencyIndex,
          example: {
            ...head,
            ranking: [
              {
                rank: 1,
                courierCode: "GLS_ITA",
                status: "ok",
                index: 71.5,
                speed: 80,
                consistency: 55,
                reliability: 71.3,
                basis: "transit",
                level: "cap",
                weightBand: null,
                sampleSize: 140,
              },
            ],
          },
        },
      },
      503: away,
    },
    errors: [400, 422],
  },
];
