/** `GET /panel/api/webhooks/{endpointId}/stats`: success rate and latency by hour, and what stands in the queues. */

import { Type } from "@sinclair/typebox";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import { companyPartition } from "#core/platform/redis/keys.ts";
import { hourOf } from "#core/platform/time/hour-of.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import {
  type AttemptHour,
  readAttemptStats,
  readQueueDepths,
} from "#core/webhooks/store/attempt-stats.ts";
import { DELIVERY_LIFE_MS } from "#core/webhooks/store/deliveries/deliveries.ts";
import { readEndpointLoad } from "#core/webhooks/store/endpoint-load.ts";
import { panelRoutes } from "#panel/server/panel-routes.ts";
import { endpointOf, instantOfQuery } from "./webhook-access.ts";
import { instant, isoOf } from "./webhook-view.ts";

const HOUR_MS = 3_600_000;
const DEFAULT_HOURS = 24;

const figures = {
  attempts: Type.Integer(),
  succeeded: Type.Integer(),
  failed: Type.Integer(),
  successRate: Type.Union([Type.Number(), Type.Null()], { description: "0 to 1; null = none" }),
  p50Ms: Type.Union([Type.Number(), Type.Null()], { description: "to within 10 percent" }),
  p95Ms: Type.Union([Type.Number(), Type.Null()], { description: "to within 10 percent" }),
};

const Stats = Type.Object({
  endpointId: Type.String(),
  from: instant,
  to: instant,
  now: Type.Object({
    queued: Type.Integer({ description: "first attempts that wait" }),
    waiting: Type.Integer({ description: "retries that wait" }),
    inFlight: Type.Integer(),
    concurrency: Type.Integer({
      description: "how many may be in flight now: it adapts, up to maxConcurrency",
    }),
    pausedUntil: Type.Union([instant, Type.Null()], {
      description: "nothing is sent until then: the rate limit, or the Retry-After of a 429",
    }),
  }),
  total: Type.Object(figures),
  codes: Type.Array(
    Type.Object({
      code: Type.String({
        description: "an HTTP status such as 503, the others of a hundred such as 4xx, or none",
      }),
      attempts: Type.Integer(),
      p50Ms: figures.p50Ms,
      p95Ms: figures.p95Ms,
    }),
    { description: "by what was answered, the most frequent first" },
  ),
  hours: Type.Array(Type.Object({ hour: instant, ...figures }), {
    description: "hours without an attempt are left out",
  }),
});

export function webhookStatsRoute(runtime: Runtime) {
  const { redis, live } = runtime;
  return panelRoutes(runtime, "webhook stats").get(
    "/panel/api/webhooks/:endpointId/stats",
    async ({ params, query }) => {
      const { endpoint, channel } = endpointOf(await live.refresh(), params.endpointId);
      const nowMs = live.now();
      const { from: first, to: last } = query;
      const toMs = last === undefined ? nowMs : instantOfQuery("to", last, true);
      const fromMs =
        first === undefined
          ? toMs - (DEFAULT_HOURS - 1) * HOUR_MS
          : instantOfQuery("from", first, false);
      if (fromMs > toMs) throw new Problem(422, "INVALID_QUERY", "from is later than to.");
      // Older hours are gone, later ones have not come.
      const hours = [Math.max(fromMs, nowMs - DELIVERY_LIFE_MS), Math.min(toMs, nowMs)].map(hourOf);
      const [fromHour = 0, toHour = 0] = hours;
      const partition = companyPartition(channel.companyId);
      const [stats, depths, load] = await Promise.all([
        readAttemptStats(redis, partition, endpoint.id, fromHour, Math.max(fromHour, toHour)),
        readQueueDepths(redis, partition, endpoint.id),
        readEndpointLoad(redis, partition, endpoint.id, endpoint.maxConcurrency, nowMs),
      ]);
      const { concurrency, pausedUntilMs } = load;
      const pausedUntil = pausedUntilMs === null ? null : isoOf(pausedUntilMs);
      return {
        endpointId: endpoint.id,
        from: isoOf(fromHour * HOUR_MS),
        to: isoOf(toMs),
        now: { ...depths, concurrency, pausedUntil },
        total: figuresOf(stats.total),
        codes: [...stats.codes],
        hours: stats.hours.map((one) => ({ hour: isoOf(one.hour * HOUR_MS), ...figuresOf(one) })),
      };
    },
    route({
      access: { can: "webhooks:read", of: "endpoint" },
      query: Type.Object({
        from: Type.Optional(Type.String({ description: "default 24 hours before `to`" })),
        to: Type.Optional(Type.String({ description: "default now; at most 30 days back" })),
      }),
      response: Stats,
      summary: "Counts and latency of an endpoint by hour",
    }),
  );
}

function figuresOf({ attempts, succeeded, p50Ms, p95Ms }: Omit<AttemptHour, "hour">) {
  const successRate = attempts === 0 ? null : succeeded / attempts;
  return { attempts, succeeded, failed: attempts - succeeded, successRate, p50Ms, p95Ms };
}
