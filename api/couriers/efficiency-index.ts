/** `POST /v2/couriers/efficiency-index` (document 1, "Couriers"): couriers of a lane by their index, best first. */

import { type Static, Type } from "@sinclair/typebox";
import type { CourierEfficiency as Row } from "#analytics/benchmarks.ts";
import { merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { declared, route } from "#core/platform/http/access.ts";
import { json } from "#core/platform/openapi/operation.ts";
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

const { courierCode, sampleSize, level, weightBand, status } = courierFields;
const score = Type.Union([Type.Number(), Type.Null()], { description: "0 to 100" });

export const CourierEfficiency = Type.Object({
  rank: Type.Union([Type.Integer(), Type.Null()]),
  courierCode,
  status,
  index: score,
  speed: score,
  consistency: score,
  reliability: score,
  basis: Type.Union([Type.Literal("transit"), Type.Literal("lead"), Type.Null()]),
  level,
  weightBand,
  sampleSize,
  medianInterval: interval,
});
type CourierEfficiency = Static<typeof CourierEfficiency>;

export const EfficiencyIndex = Type.Object({
  ...laneFields,
  ranking: Type.Array(CourierEfficiency),
  warnings,
});
type EfficiencyIndex = Static<typeof EfficiencyIndex>;

const operation = declared({
  access: { scope: "efficiency-index:read" },
  ...laneOperation,
  id: "readEfficiencyIndex",
  summary: "Couriers of a lane by their efficiency index",
  description:
    "The index compares a courier with the whole network on the lane, from 0 to 100; 50 is as good as the network. It is 0.4 speed + 0.2 consistency + 0.4 reliability. Speed is the chance that its delivery takes fewer days than one of the network (transit days if 20 are known, else lead days), consistency the same for the distance from the median, and reliability 100 n / (n + c) with the shares of deliveries with a second attempt or an exception: n of the network, c of the courier and 20 deliveries of the network. For example, speed 80, consistency 55 and reliability 71.3 make 0.4 × 80 + 0.2 × 55 + 0.4 × 71.3 = 71.5. Fewer than 20 deliveries are `insufficient_data`.",
  answers: {
    200: json("Ranked couriers best first, then those without enough data.", EfficiencyIndex, {
      ...EXAMPLE_LANE,
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
    }),
  },
});

export function efficiencyIndexRoute(deps: ApiDeps) {
  const { benchmarks, live } = deps;
  const asOf = freshness(deps);
  return merchantRoutes(deps).post(
    "/v2/couriers/efficiency-index",
    async ({ body, caller }): Promise<EfficiencyIndex> => {
      const query = laneQuery(body, caller, live.now());
      const isFull = body.detail === "full";
      const fresh = isFull ? { asOf: await asOf() } : {};
      const rows = await benchmarks.efficiencyIndex(query);
      return { ...laneView(query), ...fresh, ranking: rows.map(isFull ? fullRowView : rowView) };
    },
    route(operation),
  );
}

/** The formula is in `core/benchmarks/rules/efficiency-index.ts`. */
function rowView(row: Row): CourierEfficiency {
  const { rank, courierCode, status, scores, level, weightBand, sampleSize } = row;
  return {
    rank,
    courierCode,
    status,
    index: scores?.index ?? null,
    speed: scores?.speed ?? null,
    consistency: scores?.consistency ?? null,
    reliability: scores?.reliability ?? null,
    basis: scores?.basis ?? null,
    level,
    weightBand,
    sampleSize,
  };
}

function fullRowView(row: Row): CourierEfficiency {
  return { ...rowView(row), medianInterval: row.medianInterval };
}
