/** Links to share a courier's quality report, and the report behind such a link. */

import { type Static, Type } from "@sinclair/typebox";
import type { Insights } from "#analytics/insights.ts";
import {
  listQualityLinks,
  makeQualityLink,
  type QualityLink,
  qualityLinkOf,
  revokeQualityLink,
} from "#core/accounts/store/quality-links.ts";
import { takeCourierRate } from "#core/events/store/courier-rate.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { publicRoutes, route } from "#core/platform/http/access.ts";
import { limit, rate } from "#core/platform/schema/limit.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { QualityView, SilenceView } from "#panel/server/benchmarks/analytics-view.ts";
import { networkOf } from "#panel/server/caller.ts";
import { jsonBody } from "#panel/server/http/checked-body.ts";
import { daysOf } from "#panel/server/http/report-days.ts";
import { UNSHARED } from "#panel/server/http/unshared.ts";
import { noteChange, panelRoutes } from "#panel/server/panel-routes.ts";
import { courierOf } from "./courier-of.ts";

const DAY_MS = 86_400_000;
const LINK_DAYS = 30;
const LINK_DAYS_MOST = limit(366, "life of a link to a quality report, in days", "422");
const REPORT_RATE = rate(30, 1, "reports behind links for one network", "429 with `Retry-After`");

const instant = Type.String({ description: "ISO 8601" });

export const QualityLinkView = Type.Object({
  id: Type.String(),
  createdBy: Type.String(),
  createdAt: instant,
  expiresAt: instant,
});

export const NewQualityLink = Type.Object({
  ...QualityLinkView.properties,
  url: Type.String({ description: "shown this once" }),
});

export const QualityLinkInput = Type.Object(
  {
    expiresInDays: Type.Optional(
      Type.Integer({ minimum: 1, maximum: LINK_DAYS_MOST, description: `default ${LINK_DAYS}` }),
    ),
  },
  { additionalProperties: false },
);

export const SharedQuality = Type.Object({
  courier: Type.String(),
  name: Type.String(),
  days: Type.Integer(),
  expiresAt: instant,
  quality: Type.Union([QualityView, Type.Null()], { description: "null = nothing was received" }),
  silence: Type.Union([SilenceView, Type.Null()], { description: "null = it never sent anything" }),
});

export function qualityLinkRoutes(runtime: Runtime) {
  const { redis, live, config } = runtime;
  return panelRoutes(runtime, "quality-links")
    .get(
      "/panel/api/couriers/:code/quality-links",
      async ({ params }) => {
        const { code } = courierOf(await live.refresh(), params.code);
        return { items: (await listQualityLinks(redis, code, live.now())).map(viewOf) };
      },
      route({
        access: { can: "quality:share", of: "courier" },
        response: Type.Object({ items: Type.Array(QualityLinkView) }),
        summary: "Links to the courier's quality report that are in force",
      }),
    )
    .post(
      "/panel/api/couriers/:code/quality-links",
      async ({ params, body, request, caller, set }) => {
        const { expiresInDays = LINK_DAYS } = body;
        const { code: courier } = courierOf(await live.refresh(), params.code);
        const createdAtMs = live.now();
        const untilMs = createdAtMs + expiresInDays * DAY_MS;
        const made = await makeQualityLink(redis, {
          courier,
          createdBy: caller.actor,
          createdAtMs,
          untilMs,
        });
        if (!made) throw new Problem(409, "TOO_MANY_LINKS", "Revoke a link first.");
        const view = viewOf(made.link);
        noteChange(request, null, view);
        set.status = 201;
        return { ...view, url: `${config.publicUrl}/quality/${made.token}` };
      },
      route({
        access: { can: "quality:share", of: "courier" },
        response: { 201: NewQualityLink },
        summary:
          "Make a link by which anybody reads the courier's quality report, and nothing else",
        errors: ["TOO_MANY_LINKS", "CONFIGURATION_BUSY"],
        body: jsonBody(QualityLinkInput, { expiresInDays: 30 }),
      }),
    )
    .delete(
      "/panel/api/couriers/:code/quality-links/:id",
      async ({ params, request, set }) => {
        const { code } = courierOf(await live.refresh(), params.code);
        const revoked = await revokeQualityLink(redis, code, params.id, live.now());
        if (!revoked) throw linkNotFound();
        noteChange(request, viewOf(revoked), null);
        set.status = 204;
      },
      route({
        access: { can: "quality:share", of: "courier" },
        summary: "Revoke a link; it is answered like one that never was",
        errors: ["QUALITY_LINK_NOT_FOUND"],
        answers: { 204: { description: "revoked" } },
      }),
    );
}

/** What is behind a link, for anybody who has it. */
export function sharedQualityRoute(runtime: Runtime, insights: Insights) {
  const { redis, live } = runtime;
  return publicRoutes("shared-quality").get(
    "/panel/api/quality/:token",
    async ({ params, query, request, server, set }) => {
      Object.assign(set.headers, UNSHARED);
      await live.followTestClock();
      const network = networkOf(runtime, request, server);
      const { allowed, retryAfterMs } = await takeCourierRate(
        redis,
        `quality ${network}`,
        REPORT_RATE,
        live.now(),
      );
      if (!allowed) throw tooMany(retryAfterMs);
      const link = await qualityLinkOf(redis, params.token, live.now());
      const courier = link && (await live.refresh()).couriers.get(link.courier);
      if (!courier) throw linkNotFound();
      return reportOf(insights, link, courier.name, daysOf(query.days ?? "30"), live.now());
    },
    route({
      query: Type.Object({
        days: Type.Optional(Type.String({ description: "default 30, at most 90" })),
      }),
      response: SharedQuality,
      summary: "The quality report behind a link",
      errors: ["QUALITY_LINK_NOT_FOUND", "RATE_LIMITED", "ANALYTICS_UNAVAILABLE"],
    }),
  );
}

async function reportOf(
  insights: Insights,
  { courier, untilMs }: QualityLink,
  name: string,
  days: number,
  nowMs: number,
): Promise<Static<typeof SharedQuality>> {
  const isOwn = (row: { readonly courier: string }) => row.courier === courier;
  const [quality, silence] = await Promise.all([
    insights.quality(nowMs - days * DAY_MS, nowMs),
    insights.silence(nowMs),
  ]);
  const { lastHourMs, ...heard } = silence.find(isOwn) ?? { lastHourMs: 0 };
  return {
    courier,
    name,
    days,
    expiresAt: new Date(untilMs).toISOString(),
    quality: quality.find(isOwn) ?? null,
    silence: "courier" in heard ? { ...heard, lastHour: new Date(lastHourMs).toISOString() } : null,
  };
}

function viewOf({ id, createdBy, createdAtMs, untilMs }: QualityLink) {
  return {
    id,
    createdBy,
    createdAt: new Date(createdAtMs).toISOString(),
    expiresAt: new Date(untilMs).toISOString(),
  };
}

/** The same whether a link was revoked, has expired or never was. */
function linkNotFound(): Problem {
  const detail = "There is no such link: it was revoked, or is over.";
  return new Problem(404, "QUALITY_LINK_NOT_FOUND", detail, { headers: UNSHARED });
}

function tooMany(retryAfterMs: number): Problem {
  const seconds = String(Math.ceil(retryAfterMs / 1000));
  return new Problem(429, "RATE_LIMITED", `Too many reports; retry after ${seconds} s.`, {
    headers: { ...UNSHARED, "retry-after": seconds },
  });
}
