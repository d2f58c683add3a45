/** `POST /v2/couriers/delivery-times` (document 1, "Couriers"): anonymous, network-wide delivery times of a lane. */

import { type Static, Type } from "@sinclair/typebox";
import type { CourierTimes } from "#analytics/benchmarks.ts";
import { merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { declared, route } from "#core/platform/http/access.ts";
import { json } from "#core/platform/openapi/operation.ts";
import { nullableNumber } from "#core/platform/schema/nullable.ts";
import { warnings } from "#core/platform/schema/unknown-members.ts";
import { freshness } from "./freshness.ts";
import {
  courierFields,
  EXAMPLE_LANE,
  interval,
  laneFields,
  laneOperation,
  laneQuery,
  laneView,
} from "./lane-request.ts";

const days = Type.Union([Type.Integer(), Type.Null()]);
const { courierCode, sampleSize, level, weightBand, status } = courierFields;
const maybe = Type.Optional;

export const FastestCourier = Type.Object({
  courierCode,
  leadMedian: days,
  leadMean: nullableNumber,
  transitMedian: days,
  transitMean: nullableNumber,
  sampleSize: Type.Integer(),
});

export const CourierDeliveryTimes = Type.Object({
  position: Type.Union([Type.Integer(), Type.Null()], { description: "from 1" }),
  courierCode,
  status: maybe(status),
  level: maybe(level),
  weightBand: maybe(weightBand),
  leadMedian: days,
  leadMean: maybe(nullableNumber),
  leadP90: maybe(days),
  transitMedian: days,
  transitMean: maybe(nullableNumber),
  transitP90: maybe(days),
  sampleSize,
  transitSampleSize: maybe(sampleSize),
  leadMedianInterval: interval,
  transitMedianInterval: interval,
});

export const DeliveryTimes = Type.Object({
  ...laneFields,
  best: maybe(
    Type.Union([FastestCourier, Type.Null()], {
      description: "null if no courier has enough data; absent with detail=full",
    }),
  ),
  ranking: Type.Array(CourierDeliveryTimes),
  warnings,
});
type DeliveryTimes = Static<typeof DeliveryTimes>;

const example = { courierCode: "GLS_ITA", leadMedian: 2, transitMedian: 1, sampleSize: 140 };

const operation = declared({
  access: { scope: "delivery-times:read" },
  ...laneOperation,
  id: "readDeliveryTimes",
  summary: "Delivery times of couriers on a lane",
  description: "Anonymous, over the whole network, calendar days of the last 12 months.",
  answers: {
    200: json("Couriers with data, fastest first.", DeliveryTimes, {
      ...EXAMPLE_LANE,
      best: { ...example, leadMean: 2.3, transitMean: 1.2 },
      ranking: [{ position: 1, ...example }],
    }),
  },
});

export function deliveryTimesRoute(deps: ApiDeps) {
  const { benchmarks, live } = deps;
  const asOf = freshness(deps);
  return merchantRoutes(deps).post(
    "/v2/couriers/delivery-times",
    async ({ body, caller }): Promise<DeliveryTimes> => {
      const query = laneQuery(body, caller, live.now());
      const isFull = body.detail === "full";
      const fresh = isFull ? { asOf: await asOf() } : {};
      const times = await benchmarks.deliveryTimes(query);
      const answer = isFull ? fullView(times) : summaryView(times);
      return { ...laneView(query), ...fresh, ...answer };
    },
    route(operation),
  );
}

type Ranking = Pick<DeliveryTimes, "best" | "ranking">;

/** Couriers with data only. */
function summaryView(times: readonly CourierTimes[]): Ranking {
  const ranked = times.filter(({ status }) => status === "ok");
  const [first] = ranked;
  return {
    best:
      first && first.sampleSize !== null
        ? {
            courierCode: first.courierCode,
            leadMedian: first.leadMedian,
            leadMean: first.leadMean,
            transitMedian: first.transitMedian,
            transitMean: first.transitMean,
            sampleSize: first.sampleSize,
          }
        : null,
    ranking: ranked.map(({ courierCode, leadMedian, transitMedian, sampleSize }, at) => ({
      position: at + 1,
      courierCode,
      leadMedian,
      transitMedian,
      sampleSize,
    })),
  };
}

/** Couriers without enough data stand at the end and have no position. */
function fullView(times: readonly CourierTimes[]): Ranking {
  return {
    ranking: times.map((row, at) => ({
      position: row.status === "ok" ? at + 1 : null,
      courierCode: row.courierCode,
      status: row.status,
      level: row.level,
      weightBand: row.weightBand,
      leadMedian: row.leadMedian,
      leadMean: row.leadMean,
      leadP90: row.leadP90,
      transitMedian: row.transitMedian,
      transitMean: row.transitMean,
      transitP90: row.transitP90,
      sampleSize: row.sampleSize,
      transitSampleSize: row.transitSampleSize,
      leadMedianInterval: row.leadMedianInterval,
      transitMedianInterval: row.transitMedianInterval,
    })),
  };
}
