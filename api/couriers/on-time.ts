/** `GET /v2/couriers/on-time`, an extension of document 1, "Couriers": the share of deliveries on the day that was promised, or before. */

import { type Static, Type } from "@sinclair/typebox";
import type { OnTimeQuery } from "#analytics/benchmarks.ts";
import { merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { validationFailed } from "#api/http/error-response.ts";
import { windowStart } from "#core/benchmarks/rules/lane.ts";
import { declared, route } from "#core/platform/http/access.ts";
import { searchParamsOf } from "#core/platform/http/search-params.ts";
import { json, query, type Rule } from "#core/platform/openapi/operation.ts";
import type { Fault } from "#core/platform/schema/fault.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { nullableNumber, nullableText } from "#core/platform/schema/nullable.ts";
import { daysBetween, isCalendarDate, romeDate } from "#core/platform/time/rome-time.ts";
import { freshness } from "./freshness.ts";
import { BenchmarksUnavailable } from "./lane-request.ts";

const FIRST_DAY = "2000-01-01";
const LAST_DAY = "2199-12-31";
/** A year with its two ends, also a leap year. */
export const ON_TIME_DAYS = limit(367, "days of one question about on-time deliveries", "422");

export const KeptPromises = Type.Object({
  share: { ...nullableNumber, description: "0 to 1; null below 20 deliveries" },
  sampleSize: {
    ...nullableNumber,
    description: "deliveries that had the promise; null below 20",
  },
});

export const OnTimeView = Type.Object({
  from: Type.String({ description: "first day of delivery, YYYY-MM-DD in Europe/Rome" }),
  to: Type.String({ description: "last day of delivery, inclusive" }),
  courier: { ...nullableText, description: "null: all couriers of the network" },
  firstEstimate: { ...KeptPromises, description: "by the first day that the courier estimated" },
  lastEstimate: { ...KeptPromises, description: "by the last day that it estimated" },
  planned: { ...KeptPromises, description: "by `planning.deliveryDate` of the merchant" },
  asOf: Type.String({
    description: "ISO 8601: events accepted before it count in the figures",
  }),
});
type OnTimeView = Static<typeof OnTimeView>;

const day = Type.String({ format: "calendar-date" });

const operation = declared({
  access: { scope: "delivery-times:read" },
  id: "readOnTime",
  summary: "Share of deliveries on time",
  description:
    "Anonymous, over the whole network, by the day of delivery. A delivery is on time on the promised day or before; returns are left out. Three promises, each with its own sample: the courier's first estimate, its last one before it delivered, and the merchant's planned date. Of an estimated window its end counts.",
  extension: true,
  rules: [
    {
      path: "from",
      code: "OUT_OF_RANGE",
      rule: `at most ${ON_TIME_DAYS} days before \`to\`, and not after it`,
    },
    ...["from", "to"].map(
      (path): Rule => ({
        path,
        code: "BAD_FORMAT",
        rule: `from ${FIRST_DAY} to ${LAST_DAY}`,
      }),
    ),
  ],
  parameters: [
    query("from", day, "Default: a year before `to`.", "2026-10-01"),
    query("to", day, `Default: today. At most ${ON_TIME_DAYS} days from \`from\`.`, "2026-10-31"),
    query(
      "courier",
      Type.String({ minLength: 1, maxLength: 50 }),
      "Courier code; default: all.",
      "GLS_ITA",
    ),
  ],
  answers: {
    200: json("Shares by the three promises.", OnTimeView, {
      from: "2026-10-01",
      to: "2026-10-31",
      courier: "GLS_ITA",
      firstEstimate: { share: 0.871, sampleSize: 1240 },
      lastEstimate: { share: 0.953, sampleSize: 1240 },
      planned: { share: null, sampleSize: null },
      asOf: "2026-11-20T09:00:00.000+01:00",
    }),
  },
  errors: ["VALIDATION_FAILED", "BENCHMARKS_UNAVAILABLE"],
  problems: { statuses: [503], schema: BenchmarksUnavailable },
});

export function onTimeRoute(deps: ApiDeps) {
  const { benchmarks, live } = deps;
  const asOf = freshness(deps);
  return merchantRoutes(deps).get(
    "/v2/couriers/on-time",
    async ({ request }): Promise<OnTimeView> => {
      const asked = readQuery(searchParamsOf(request), live.now());
      const before = await asOf();
      return { ...asked, ...(await benchmarks.onTime(asked)), asOf: before };
    },
    route(operation),
  );
}

/** @throws {Problem} 422 */
function readQuery(params: URLSearchParams, nowMs: number): OnTimeQuery {
  const faults: Fault[] = [];
  const courier = params.get("courier");
  if (courier !== null && !/^.{1,50}$/su.test(courier)) {
    const message = "A courier code has 1 to 50 characters.";
    faults.push({ path: "courier", code: "BAD_FORMAT", message });
  }
  for (const name of ["from", "to"]) {
    const given = params.get(name);
    if (given === null || (isCalendarDate(given) && given >= FIRST_DAY && given <= LAST_DAY))
      continue;
    const message = `A date from ${FIRST_DAY} to ${LAST_DAY}, YYYY-MM-DD.`;
    faults.push({ path: name, code: "BAD_FORMAT", message });
  }
  if (faults.length > 0) throw validationFailed(faults);
  const to = params.get("to") ?? romeDate(nowMs);
  const from = params.get("from") ?? windowStart(Date.parse(`${to}T12:00:00Z`));
  const days = daysBetween(from, to) + 1;
  if (days < 1 || days > ON_TIME_DAYS) {
    const message = `\`from\` must be at most ${ON_TIME_DAYS} days before \`to\`, and not after it.`;
    throw validationFailed([{ path: "from", code: "OUT_OF_RANGE", message }]);
  }
  return { from, to, courier };
}
