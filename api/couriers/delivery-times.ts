/** `POST /v2/couriers/delivery-times` (document 1, "Couriers"): anonymous, network-wide delivery times of a lane. */

import { Elysia } from "elysia";
import type { CourierTimes } from "#analytics/benchmarks.ts";
import { authenticated } from "#api/auth/authenticated.ts";
import { SMALL_BODY_BYTES } from "#api/body-limits.ts";
import type { ApiDeps } from "#api/deps.ts";
import { readChecked } from "#api/read-json.ts";
import { compileSchema } from "#core/domain/schema/compile-schema.ts";
import { freshness } from "./freshness.ts";
import { LaneRequest, laneQuery, laneView } from "./lane-request.ts";

const checker = compileSchema(LaneRequest);

export function deliveryTimesRoute(deps: ApiDeps) {
  const { benchmarks, live } = deps;
  const asOf = freshness(deps);
  return new Elysia().use(authenticated(deps)).post(
    "/v2/couriers/delivery-times",
    async ({ request, caller }) => {
      const body = await readChecked(request, checker, SMALL_BODY_BYTES);
      const query = laneQuery(body, caller, live.now());
      const isFull = body.detail === "full";
      const fresh = isFull ? { asOf: await asOf() } : {};
      const times = await benchmarks.deliveryTimes(query);
      const answer = isFull ? fullView(times) : summaryView(times);
      return { ...laneView(query), ...fresh, ...answer };
    },
    { scope: "delivery-times:read", parse: "none" },
  );
}

/** Couriers with data only. */
function summaryView(times: readonly CourierTimes[]) {
  const ranked = times.filter(({ status }) => status === "ok");
  const [first] = ranked;
  return {
    best: first
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
function fullView(times: readonly CourierTimes[]) {
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
