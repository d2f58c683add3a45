/** `/panel/api/analytics/*`: what the benchmarks page shows, as JSON. `POST /panel/api/sql`: SQL access. */

import { Readable } from "node:stream";
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Insights } from "#analytics/insights.ts";
import { isItalianCap, MIN_SAMPLE } from "#core/benchmarks/rules/lane.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import type { Content } from "#core/platform/openapi/operation.ts";
import { jsonValue } from "#core/platform/schema/json-value.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import type { Caller } from "#panel/server/caller.ts";
import { jsonBody } from "#panel/server/http/checked-body.ts";
import { DAYS_LIMIT, daysOf } from "#panel/server/http/report-days.ts";
import { TABLE_FORMATS, tableFile } from "#panel/server/http/table-file.ts";
import { isTheirs } from "#panel/server/owners.ts";
import { noteChange, panelRoutes } from "#panel/server/panel-routes.ts";
import {
  LaneView,
  ProvinceView,
  QualityView,
  SilenceView,
  TrendView,
  WeightView,
} from "./analytics-view.ts";
import { laneShownTo, provincesShownTo, shownTo } from "./withheld.ts";

const DAY_MS = 86_400_000;
const COURIER_LENGTH = 64;
const STATEMENT_LENGTH = limit(20_000, "characters of a statement of SQL access", "422");

export const SqlQuestion = Type.Object({
  query: Type.String({ minLength: 1, maxLength: STATEMENT_LENGTH }),
  format: Type.Optional(
    Type.Union(
      (["json", "csv", "tsv", "parquet", "table"] as const).map((name) => Type.Literal(name)),
    ),
  ),
});

const CONTENT_TYPES = {
  json: "application/json",
  csv: "text/csv; charset=utf-8",
  tsv: "text/tab-separated-values; charset=utf-8",
  parquet: "application/vnd.apache.parquet",
  table: "text/plain; charset=utf-8",
} as const;

const text = (description: string) => Type.Optional(Type.String({ description }));
const listOf = <T extends TSchema>(item: T) => Type.Object({ items: Type.Array(item) });

const FORMAT = text(`json, ${TABLE_FORMATS.join(", ")}; default json`);
const READ = { can: "benchmarks:read", of: "caller" } as const;

const LaneQuery = Type.Object({
  destCap: { ...text("CAP of the destination; needed"), examples: ["00184"] },
  originCap: text("CAP of the origin"),
  weightKg: text("weight of the parcel"),
  format: FORMAT,
});

const DestinationQuery = Type.Object({
  destCap: text("to this CAP; absent = all of Italy"),
  format: FORMAT,
});

/** Answers that are no JSON, as the OpenAPI document has them. */
function filesOf(formats: readonly (keyof typeof CONTENT_TYPES)[]): Content[] {
  const types = formats.map((format) => CONTENT_TYPES[format].split(";", 1)[0] ?? "");
  return types.map((mediaType) => ({ mediaType, schema: Type.String() }));
}

/** Their answers are written by hand: they may be files. */
const rows = <Query extends TSchema>(query: Query, summary: string, item: TSchema) =>
  route({
    access: READ,
    query,
    summary,
    description: `Members of a company see rows of ${MIN_SAMPLE} deliveries or more only.`,
    answers: {
      200: {
        description: "the rows; with format=csv or parquet a file with one column for each figure",
        content: { schema: listOf(item) },
        otherContents: filesOf(TABLE_FORMATS),
      },
    },
    errors: ["ANALYTICS_UNAVAILABLE"],
  });

export function analyticsRoutes(runtime: Runtime, insights: Insights) {
  return new Elysia({ name: "analytics-routes" })
    .use(benchmarkRoutes(runtime, insights))
    .use(reportRoutes(runtime, insights))
    .use(sqlRoute(runtime, insights));
}

function benchmarkRoutes(runtime: Runtime, insights: Insights) {
  const { live } = runtime;
  return panelRoutes(runtime, "benchmarks")
    .get(
      "/panel/api/analytics/lane",
      async ({ query, caller }) => {
        const { destCap, originCap, weightKg } = laneOf(query);
        const nowMs = live.now();
        const found = await insights.lane({ destCap, originCap, weightKg, nowMs });
        return answerOf("lane", LaneView, laneShownTo(caller, found), query.format);
      },
      rows(LaneQuery, "Couriers to a CAP, with their distributions and efficiency index", LaneView),
    )
    .get(
      "/panel/api/analytics/provinces",
      async ({ query, caller }) => {
        const { format } = query;
        const courier = (query.courier ?? "").slice(0, COURIER_LENGTH);
        const nowMs = live.now();
        const [found, all] = await Promise.all([
          insights.provinces(courier, nowMs),
          courier === "" ? null : insights.provinceCouriers(nowMs),
        ]);
        const shown =
          all === null ? shownTo(caller, found) : provincesShownTo(caller, found, courier, all);
        return answerOf("provinces", ProvinceView, shown, format);
      },
      rows(
        Type.Object({ courier: text("of this courier alone"), format: FORMAT }),
        "Destinations by the first two digits of their CAP",
        ProvinceView,
      ),
    )
    .get(
      "/panel/api/analytics/trend",
      async ({ query: { destCap, format }, caller }) => {
        const found = await insights.trend(optionalCap(destCap), live.now());
        return answerOf("trend", TrendView, shownTo(caller, found), format);
      },
      rows(DestinationQuery, "Couriers by month of delivery", TrendView),
    )
    .get(
      "/panel/api/analytics/weights",
      async ({ query: { destCap, format }, caller }) => {
        const found = await insights.weights(optionalCap(destCap), live.now());
        return answerOf("weights", WeightView, shownTo(caller, found), format);
      },
      rows(DestinationQuery, "Couriers by weight of the parcel", WeightView),
    );
}

/** In JSON, or as a file. @throws {Problem} 422 */
function answerOf(
  name: string,
  schema: TSchema,
  items: readonly object[],
  format: string | undefined,
): Response {
  if (format === undefined || format === "json") return Response.json({ items });
  const known = TABLE_FORMATS.find((one) => one === format);
  if (known) return tableFile(`benchmarks-${name}`, schema, items, known);
  throw wrongQuery("format", `One of json, ${TABLE_FORMATS.join(", ")}.`);
}

function reportRoutes(runtime: Runtime, insights: Insights) {
  const { live } = runtime;
  return panelRoutes(runtime, "analytics")
    .get(
      "/panel/api/analytics/quality",
      async ({ query, caller }) => {
        const days = daysOf(query.days ?? "7");
        const nowMs = live.now();
        const all = await insights.quality(nowMs - days * DAY_MS, nowMs);
        return { days, items: all.filter((row) => isOfCaller(caller, row)) };
      },
      route({
        access: { can: "quality:read", of: "caller" },
        query: Type.Object({ days: text(`default 7, at most ${DAYS_LIMIT}`) }),
        response: Type.Object({ days: Type.Integer(), items: Type.Array(QualityView) }),
        summary: "How couriers report",
        errors: ["ANALYTICS_UNAVAILABLE"],
      }),
    )
    .get(
      "/panel/api/analytics/silence",
      async ({ caller }) => ({
        items: (await insights.silence(live.now()))
          .filter((row) => isOfCaller(caller, row))
          .map(({ lastHourMs, ...row }) => ({
            ...row,
            lastHour: new Date(lastHourMs).toISOString(),
          })),
      }),
      route({
        access: { can: "quality:read", of: "caller" },
        response: listOf(SilenceView),
        summary: "Events of the last full hours against the same hours of the weeks before",
        errors: ["ANALYTICS_UNAVAILABLE"],
      }),
    );
}

function sqlRoute(runtime: Runtime, insights: Insights) {
  return panelRoutes(runtime, "sql").post(
    "/panel/api/sql",
    async ({ body, request, caller }) => {
      const { query, format = "json" } = body;
      noteChange(request, null, { query });
      const person = caller.account?.id ?? caller.actor;
      const rows = Readable.toWeb(await insights.sql.ask(query, format, person));
      return new Response(rows as unknown as ReadableStream, {
        headers: { "content-type": CONTENT_TYPES[format], "cache-control": "no-store" },
      });
    },
    route({
      access: { can: "sql:run", of: "installation" },
      reads: true,
      summary:
        "One SELECT on the analytics, read-only: {query, format: json|csv|tsv|parquet|table}",
      errors: ["SQL_FAILED", "SQL_REFUSED", "SQL_BUSY", "SQL_DOOR_SHUT", "ANALYTICS_UNAVAILABLE"],
      body: jsonBody(SqlQuestion, { query: "SELECT 1 AS one", format: "json" }),
      answers: {
        200: {
          description: "rows in the format that was asked for",
          content: { schema: jsonValue() },
          otherContents: filesOf(["csv", "tsv", "parquet", "table"]),
        },
      },
    }),
  );
}

function isOfCaller(caller: Caller, { courier }: { readonly courier: string }): boolean {
  return isTheirs(caller, { companyCode: null, courierCode: courier });
}

function laneOf({ destCap = "", originCap, weightKg }: Static<typeof LaneQuery>) {
  const weight = weightKg === undefined || weightKg === "" ? null : Number(weightKg);
  if (weight !== null && !(weight > 0)) throw wrongQuery("weightKg", "More than 0.");
  return {
    destCap: capOf(destCap),
    originCap: originCap === undefined || originCap === "" ? null : capOf(originCap),
    weightKg: weight,
  };
}

function capOf(text: string): string {
  if (!isItalianCap(text)) throw wrongQuery("destCap", "An Italian CAP of five digits.");
  return text;
}

/** Empty = all of Italy. @throws {Problem} 422 */
function optionalCap(text: string | undefined): string {
  return text === undefined || text === "" ? "" : capOf(text);
}

function wrongQuery(path: string, message: string): Problem {
  const violations = [{ path, code: "NOT_ALLOWED", message }];
  return new Problem(422, "INVALID_QUERY", `${path}: ${message}`, { members: { violations } });
}
