/** `GET /panel/api/webhooks/{endpointId}/missed`: what an endpoint did not get, and how its merchant catches up. */

import { Type } from "@sinclair/typebox";
import { route } from "#core/platform/http/access.ts";
import { nullableText as text } from "#core/platform/schema/nullable.ts";
import { romeDateTime } from "#core/platform/time/rome-time.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { readMissed } from "#core/webhooks/store/deliveries/missed.ts";
import { panelRoutes } from "#panel/server/panel-routes.ts";
import { endpointOf, instantOfQuery } from "./webhook-access.ts";

/** A change comes before its webhook: a catch-up that begins so much earlier misses none. */
const HEAD_START_MS = 60_000;

const MissedView = Type.Object({
  from: Type.Union([Type.String(), Type.Null()], {
    description: "creation of the oldest delivery that was given up; null when there is none",
  }),
  to: text,
  deliveries: Type.Integer({ description: "that were given up and can be replayed" }),
  shipments: Type.Integer({ description: "that they are about" }),
  shipmentsBehind: Type.Integer({
    description: "those among them that have had no later delivery; 0 after a catch-up",
  }),
  isComplete: Type.Boolean({ description: "false: more deliveries than were looked at" }),
  pullCall: Type.Union([Type.String(), Type.Null()], {
    description: "the merchants' call that tells the same, for those who would rather ask",
  }),
});

export function missedRoute(runtime: Runtime) {
  const { redis, live } = runtime;
  return panelRoutes(runtime, "webhook missed").get(
    "/panel/api/webhooks/:endpointId/missed",
    async ({ params, query }) => {
      const { endpoint, channel } = endpointOf(await live.refresh(), params.endpointId);
      const sinceMs = query.since ? instantOfQuery("since", query.since, false) : 0;
      const { companyId } = channel;
      const { window, ...counts } = await readMissed(
        ...([redis, companyId, endpoint.id, sinceMs, live.now()] as const),
      );
      if (window === null) return { ...counts, from: null, to: null, pullCall: null };
      const updatedAfter = romeDateTime(window.fromMs - HEAD_START_MS);
      const asked = new URLSearchParams({ updatedAfter, sortBy: "updatedAt_asc", limit: "100" });
      return {
        ...counts,
        from: new Date(window.fromMs).toISOString(),
        to: new Date(window.toMs).toISOString(),
        pullCall: `GET /v2/shipments?${asked}`,
      };
    },
    route({
      access: { can: "webhooks:read", of: "endpoint" },
      query: Type.Object({
        since: Type.Optional(Type.String({ description: "default all that can be replayed" })),
      }),
      response: MissedView,
      summary: "Deliveries that were given up, and the call that tells the same",
    }),
  );
}
