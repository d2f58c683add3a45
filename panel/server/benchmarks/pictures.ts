/** What the panel draws of events, delays and webhook attempts: from ClickHouse, which keeps each row for as long as its table does. */
import { type Static, Type } from "@sinclair/typebox";
import type { Insights } from "#analytics/insights.ts";
import type { Configuration } from "#core/configuration/store/configuration.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { v1EndpointId } from "#core/webhooks/rules/webhook-v1.ts";
import { unlessAnalyticsAway } from "#panel/server/analytics-away.ts";
import type { Caller } from "#panel/server/caller.ts";
import { isTheirs } from "#panel/server/owners.ts";
import { panelRoutes } from "#panel/server/panel-routes.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Of which the last hour is not over. */
const PERIODS: ReadonlyMap<string, { readonly spanMs: number; readonly stepMs: number }> = new Map([
  ["24h", { spanMs: DAY_MS, stepMs: HOUR_MS }],
  ["7d", { spanMs: 7 * DAY_MS, stepMs: HOUR_MS }],
  ["30d", { spanMs: 30 * DAY_MS, stepMs: 6 * HOUR_MS }],
]);
const NO_ENDPOINT = "none";

const count = Type.Integer();
const ms = (description: string) =>
  Type.Integer({ description: `${description}, UTC milliseconds` });

const isComplete = Type.Boolean({
  description: "false while the analytics cannot be asked: there are no rows then",
});

export const CourierHours = Type.Object({
  from: ms("begin of the first full hour"),
  to: ms("end of the last one"),
  items: Type.Array(
    Type.Object({ courier: Type.String(), at: ms("begin of the hour"), events: count }),
  ),
  isComplete,
});

export const CourierDelays = Type.Object({
  items: Type.Array(
    Type.Object({
      courier: Type.String(),
      day: Type.String({ description: "in Europe/Rome" }),
      events: count,
      p50: Type.Number({ description: "seconds from what happened to its receipt" }),
      p95: Type.Number(),
    }),
  ),
});

export const WebhookPicture = Type.Object({
  from: ms("begin"),
  to: ms("now"),
  stepMs: count,
  periods: Type.Array(
    Type.Object({
      begin: ms("its begin"),
      attempts: count,
      succeeded: count,
      p50: Type.Number({ description: "milliseconds" }),
      p95: Type.Number({ description: "milliseconds" }),
    }),
    { description: "periods without an attempt are left out" },
  ),
  answers: Type.Array(
    Type.Object({
      status: Type.Integer({ description: "0 = none came" }),
      error: Type.String({ description: "empty: the status tells" }),
      attempts: count,
      endpoints: count,
    }),
    { description: "of attempts that did not succeed, the most frequent first" },
  ),
  isComplete,
});

const PictureQuery = Type.Object({
  period: Type.Optional(Type.String({ description: [...PERIODS.keys()].join(", ") })),
});

export function pictureRoutes(runtime: Runtime, insights: Insights) {
  const { live } = runtime;
  const isOf = (caller: Caller) => (row: { readonly courier: string }) =>
    isTheirs(caller, { companyCode: null, courierCode: row.courier });
  return panelRoutes(runtime, "pictures")
    .get(
      "/panel/api/analytics/courier-hours",
      async ({ caller }) => {
        const to = Math.floor(live.now() / HOUR_MS) * HOUR_MS;
        const rows = await insights.courierHours(live.now()).catch(unlessAnalyticsAway);
        const items = rows?.filter(isOf(caller)) ?? [];
        return { from: to - DAY_MS, to, items, isComplete: rows !== null };
      },
      route({
        access: { can: "quality:read", of: "caller" },
        response: CourierHours,
        summary: "Events by courier and hour, of the last 24 full hours",
      }),
    )
    .get(
      "/panel/api/analytics/courier-delays",
      async ({ caller }) => ({
        items: (await insights.courierDelays(live.now())).filter(isOf(caller)),
      }),
      route({
        access: { can: "quality:read", of: "caller" },
        response: CourierDelays,
        summary: "How long couriers took to report what happened, by day, of the last 30 days",
        errors: ["ANALYTICS_UNAVAILABLE"],
      }),
    )
    .get(
      "/panel/api/analytics/webhooks",
      async ({ caller, query }) => {
        const { spanMs, stepMs } = periodOf(query);
        const to = live.now();
        const from = Math.floor((to - spanMs) / stepMs) * stepMs;
        const endpoints = endpointsOf(await live.refresh(), caller);
        const asked = { endpoints, sinceMs: from, stepMs };
        const found = await Promise.all([
          insights.webhookPeriods(asked),
          insights.webhookAnswers({ endpoints, sinceMs: from }),
        ]).catch(unlessAnalyticsAway);
        const [periods, answers] = found ?? [[], []];
        return { from, to, stepMs, periods, answers, isComplete: found !== null };
      },
      route({
        access: { can: "webhooks:read", of: "caller" },
        query: PictureQuery,
        response: WebhookPicture,
        summary: "Webhook attempts over time, and what was answered to those that failed",
      }),
    );
}

/** @throws {Problem} 422 */
function periodOf({ period = "24h" }: Static<typeof PictureQuery>) {
  const known = PERIODS.get(period);
  if (known) return known;
  throw new Problem(422, "INVALID_QUERY", `period is one of ${[...PERIODS.keys()].join(", ")}.`);
}

/** Empty = all of them. */
function endpointsOf({ channels, companies }: Configuration, caller: Caller): string[] {
  if (caller.kind === "operator") return [];
  const own = [...channels.values()].filter(({ companyId }) =>
    isTheirs(caller, { companyCode: companies.get(companyId)?.code ?? "", courierCode: null }),
  );
  const ids = own.flatMap(({ id, endpoints }) => [
    v1EndpointId(id),
    ...endpoints.map((one) => one.id),
  ]);
  return ids.length === 0 ? [NO_ENDPOINT] : ids;
}
