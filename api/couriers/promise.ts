/** `POST /v2/couriers/promise`: when a parcel would arrive with each courier, and whether by a deadline. For a checkout. */

import { type Static, Type } from "@sinclair/typebox";
import { merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { jsonBody } from "#api/http/read-json.ts";
import { GRAINS } from "#core/benchmarks/rules/lane.ts";
import { declared, route } from "#core/platform/http/access.ts";
import { json } from "#core/platform/openapi/operation.ts";
import { warnings } from "#core/platform/schema/unknown-members.ts";
import { romeDate } from "#core/platform/time/rome-time.ts";
import { freshness } from "./freshness.ts";
import { LaneRequest, laneOperation, laneQuery } from "./lane-request.ts";

const date = Type.String({ format: "calendar-date" });
const { destCap, originCap, weightKg, couriers } = LaneRequest.properties;

export const PromiseRequest = Type.Object({
  destCap,
  originCap,
  weightKg,
  shipDate: Type.Optional(date),
  deadline: Type.Optional(date),
  couriers,
});

export const PromisedCourier = Type.Object({
  courierCode: Type.String(),
  p10: date,
  p50: date,
  p90: date,
  onTimeProbability: Type.Union([Type.Number({ minimum: 0, maximum: 1 }), Type.Null()]),
  grain: Type.Union(GRAINS.map((grain) => Type.Literal(grain))),
  sampleSize: Type.Integer({ minimum: 20 }),
});

export const CourierPromises = Type.Object({
  ranking: Type.Array(PromisedCourier),
  asOf: Type.String(),
  warnings,
});
type CourierPromises = Static<typeof CourierPromises>;

const operation = declared({
  access: { scope: "delivery-times:read" },
  id: "promiseDelivery",
  summary: "When a parcel would arrive with each courier",
  description:
    "From the network's deliveries of the last 12 months, in working days, for the finest grain of the lane with 20 of them. Couriers without such a grain are left out. Best first: by onTimeProbability where a deadline is given, then by p50, p90 and p10.",
  rules: laneOperation.rules,
  body: jsonBody(PromiseRequest, {
    destCap: "00184",
    weightKg: 2.5,
    couriers: ["GLS_ITA", "BRT_ITA"],
  }),
  answers: {
    200: json("Couriers with data, best first.", CourierPromises, {
      ranking: [
        {
          courierCode: "GLS_ITA",
          p10: "2026-11-23",
          p50: "2026-11-24",
          p90: "2026-11-26",
          onTimeProbability: 0.94,
          grain: "cap",
          sampleSize: 140,
        },
      ],
      asOf: "2026-11-20T10:00:00.000+01:00",
    }),
  },
  errors: laneOperation.errors,
  problems: laneOperation.problems,
});

export function promiseRoute(deps: ApiDeps) {
  const { benchmarks, live } = deps;
  const asOf = freshness(deps);
  return merchantRoutes(deps).post(
    "/v2/couriers/promise",
    async ({ body, caller }): Promise<CourierPromises> => {
      const nowMs = live.now();
      const query = laneQuery(body, caller, nowMs);
      const { shipDate = romeDate(nowMs), deadline = null } = body;
      const fresh = await asOf();
      const ranking = await benchmarks.promise({ ...query, shipDate, deadline });
      return { ranking, asOf: fresh };
    },
    route(operation),
  );
}
