/** The panel's HTTP API on one page. Errors are problem documents. */
import { Elysia } from "elysia";
import type { Benchmarks } from "#analytics/benchmarks.ts";
import type { Insights } from "#analytics/insights.ts";
import { toProblem } from "#core/http/errors.ts";
import { ops } from "#core/http/ops.ts";
import { requestMetrics } from "#core/http/request-metrics.ts";
import { Problem, problemResponse } from "#core/problem.ts";
import type { Runtime } from "#core/runtime.ts";
import { addressChecksRoute } from "#panel/routes/address-checks.ts";
import { analyticsRoutes } from "#panel/routes/analytics.ts";
import { explorerRoute } from "#panel/routes/analytics-explorer.ts";
import { channelRoutes } from "#panel/routes/channels.ts";
import { clockRoute } from "#panel/routes/clock.ts";
import { courierRoutes } from "#panel/routes/couriers.ts";
import { deadLetterRoutes } from "#panel/routes/dead-letters.ts";
import { deliveryRoutes } from "#panel/routes/deliveries.ts";
import { mappingRoutes } from "#panel/routes/mapping.ts";
import { panelOrdersRoute } from "#panel/routes/orders.ts";
import { overviewRoute } from "#panel/routes/overview.ts";
import { slipRoute } from "#panel/routes/slips.ts";
import { traceRoute } from "#panel/routes/trace.ts";
import { trackingRoute } from "#panel/routes/tracking.ts";
import { webhookRoutes } from "#panel/routes/webhooks.ts";
import { webhookKitRoutes } from "#panel/routes/webhooks-kit.ts";
import { webhookStatsRoute } from "#panel/routes/webhooks-stats.ts";
import { authorizeCall, sessionRoutes } from "#panel/session.ts";

/** @param insights the pages and calls of the analytics are left out without them */
export function createPanelApp(runtime: Runtime, benchmarks: Benchmarks, insights?: Insights) {
  const { redis, log, config, secrets, live } = runtime;
  const app = new Elysia()
    .onError(({ code, error, set }) => {
      const problem = problemOf(code, error, runtime);
      set.status = problem.status;
      return problemResponse(problem);
    })
    .use(requestMetrics("panel"))
    .use(ops(redis, { config }))
    .onRequest(({ request }) => {
      const { pathname } = new URL(request.url);
      if (!pathname.startsWith("/panel/api/")) return;
      authorizeCall(request, secrets.panelToken, live.now());
      log.debug({ method: request.method, path: pathname }, "panel call");
    })
    .use(overviewRoute(runtime, benchmarks))
    .use(mappingRoutes(runtime))
    .use(deadLetterRoutes(runtime))
    .use(traceRoute(runtime))
    .use(webhookRoutes(runtime))
    .use(webhookStatsRoute(runtime))
    .use(deliveryRoutes(runtime))
    .use(webhookKitRoutes(runtime))
    .use(clockRoute(runtime))
    .use(channelRoutes(runtime))
    .use(panelOrdersRoute(runtime))
    .use(addressChecksRoute(runtime))
    .use(slipRoute(runtime))
    .use(courierRoutes(runtime))
    .use(trackingRoute(runtime))
    .use(sessionRoutes(runtime));
  if (insights) app.use(analyticsRoutes(runtime, insights)).use(explorerRoute(runtime, insights));
  return app;
}

function problemOf(code: string | number, error: unknown, { redis, log }: Runtime): Problem {
  if (code === "NOT_FOUND") return new Problem(404, "NOT_FOUND", "There is no such path.");
  if (code === "PARSE") return new Problem(400, "MALFORMED_BODY", "The body is not valid JSON.");
  return toProblem(error, redis, log);
}
