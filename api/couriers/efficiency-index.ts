/** `POST /v2/couriers/efficiency-index` (document 1, "Couriers"): couriers of a lane by their index, best first. */

import { Elysia } from "elysia";
import type { CourierEfficiency } from "#analytics/benchmarks.ts";
import { authenticated } from "#api/auth/authenticated.ts";
import { SMALL_BODY_BYTES } from "#api/body-limits.ts";
import type { ApiDeps } from "#api/deps.ts";
import { readChecked } from "#api/read-json.ts";
import { compileSchema } from "#core/domain/schema/compile-schema.ts";
import { freshness } from "./freshness.ts";
import { LaneRequest, laneQuery, laneView } from "./lane-request.ts";

const checker = compileSchema(LaneRequest);

export function efficiencyIndexRoute(deps: ApiDeps) {
  const { benchmarks, live } = deps;
  const asOf = freshness(deps);
  return new Elysia().use(authenticated(deps)).post(
    "/v2/couriers/efficiency-index",
    async ({ request, caller }) => {
      const body = await readChecked(request, checker, SMALL_BODY_BYTES);
      const query = laneQuery(body, caller, live.now());
      const isFull = body.detail === "full";
      const fresh = isFull ? { asOf: await asOf() } : {};
      const rows = await benchmarks.efficiencyIndex(query);
      return { ...laneView(query), ...fresh, ranking: rows.map(isFull ? fullRowView : rowView) };
    },
    { scope: "efficiency-index:read", parse: "none" },
  );
}

/** The formula is in `core/domain/benchmarks/efficiency-index.ts`. */
function rowView(row: CourierEfficiency) {
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

function fullRowView(row: CourierEfficiency) {
  return { ...rowView(row), medianInterval: row.medianInterval };
}
