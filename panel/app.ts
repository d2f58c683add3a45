/** The panel's HTTP API on one page. Errors are problem documents. */
import { Elysia } from "elysia";
import type { Benchmarks } from "#analytics/benchmarks.ts";
import type { Insights } from "#analytics/insights.ts";
import { everyRouteDeclared } from "#core/http/access.ts";
import { toProblem } from "#core/http/errors.ts";
import { explanationOf } from "#core/http/errors-page.ts";
import { noRoute, type Route } from "#core/http/no-route.ts";
import { openApiRoute } from "#core/http/openapi/document.ts";
import { viewerRoutes } from "#core/http/openapi/viewer.ts";
import { ops } from "#core/http/ops.ts";
import { requestIds } from "#core/http/request-ids.ts";
import { requestMetrics } from "#core/http/request-metrics.ts";
import { ONE_ROUTER, requestTarget } from "#core/http/request-target.ts";
import { createMailer, type Mailer } from "#core/mail.ts";
import { problemResponse } from "#core/problem.ts";
import { STORE_NEEDS } from "#core/redis/client/store-needs.ts";
import { NO_ARCHIVE, type SearchableArchive } from "#core/redis/search/archive-search.ts";
import type { Runtime } from "#core/runtime.ts";
import type { PanelDeps } from "#panel/caller.ts";
import { operatorErrors } from "#panel/errors.ts";
import { forgetKey } from "#panel/idempotency.ts";
import { lockParties } from "#panel/lock-parties.ts";
import { PANEL_API } from "#panel/openapi.ts";
import { accountRoutes } from "#panel/routes/accounts.ts";
import { addressChecksRoute } from "#panel/routes/address-checks.ts";
import { analyticsRoutes } from "#panel/routes/analytics.ts";
import { archiveRoutes } from "#panel/routes/archive.ts";
import { auditRoute } from "#panel/routes/audit.ts";
import { boxRoutes } from "#panel/routes/boxes.ts";
import { catalogueFileRoutes } from "#panel/routes/catalogue-file.ts";
import { changeChannelRoute } from "#panel/routes/change-channel.ts";
import { channelCourierRoutes } from "#panel/routes/channel-couriers.ts";
import { channelSettingsRoutes } from "#panel/routes/channel-settings.ts";
import { channelRoutes } from "#panel/routes/channels.ts";
import { clockRoute } from "#panel/routes/clock.ts";
import { companyRoutes } from "#panel/routes/companies.ts";
import { courierRoutes } from "#panel/routes/couriers.ts";
import { deadLetterRoutes } from "#panel/routes/dead-letters.ts";
import { deliveryRoutes } from "#panel/routes/deliveries.ts";
import { doctorRoute } from "#panel/routes/doctor.ts";
import { documentRoutes } from "#panel/routes/documents.ts";
import { eventsRoute } from "#panel/routes/events.ts";
import { firstDayRoute } from "#panel/routes/first-day.ts";
import { invitationRoutes } from "#panel/routes/invitations.ts";
import { jobsRoute } from "#panel/routes/jobs.ts";
import { mappingRoutes } from "#panel/routes/mapping.ts";
import { meRoutes } from "#panel/routes/me.ts";
import { numberConflictsRoute } from "#panel/routes/number-conflicts.ts";
import { panelOrdersRoute } from "#panel/routes/orders.ts";
import { overviewRoute } from "#panel/routes/overview.ts";
import { partitionsRoute } from "#panel/routes/partitions.ts";
import { qualityLinkRoutes, sharedQualityRoute } from "#panel/routes/quality-links.ts";
import { remapRoutes } from "#panel/routes/remaps.ts";
import { shipmentRoutes } from "#panel/routes/shipments.ts";
import { slipRoute } from "#panel/routes/slips.ts";
import { templateRoutes } from "#panel/routes/templates.ts";
import { traceRoute } from "#panel/routes/trace.ts";
import { trackingRoute } from "#panel/routes/tracking.ts";
import { usageRoute } from "#panel/routes/usage.ts";
import { notFoundPage, webRoutes } from "#panel/routes/web.ts";
import { webhookRoutes } from "#panel/routes/webhooks.ts";
import { webhookKitRoutes } from "#panel/routes/webhooks-kit.ts";
import { missedRoute } from "#panel/routes/webhooks-missed.ts";
import { webhookStatsRoute } from "#panel/routes/webhooks-stats.ts";
import { webhookTestRoutes } from "#panel/routes/webhooks-test.ts";
import { sessionRoutes } from "#panel/session.ts";

/**
 * @param insights the pages and calls of the analytics are left out without them
 * @param archive without it only what Redis has is shown
 */
export function createPanelApp(
  runtime: Runtime,
  benchmarks: Benchmarks,
  insights?: Insights,
  archive: SearchableArchive = NO_ARCHIVE,
) {
  const mailer = createMailer(runtime.config);
  const app = new Elysia(ONE_ROUTER)
    .onError(async ({ code, error, path, request, set }) => {
      await forgetKey(runtime, request);
      const page = code === "NOT_FOUND" ? await notFoundPage(runtime, request) : null;
      if (page) return page;
      const problem =
        code === "NOT_FOUND"
          ? noRoute(app.routes, path, request.method)
          : toProblem(error, runtime.redis, runtime.log);
      set.status = problem.status;
      return problemResponse(problem, {}, explanationOf("operator", problem.code) ?? undefined);
    })
    .use(requestIds())
    .use(lockParties())
    .use(requestMetrics("panel"))
    .use(requestTarget())
    .use(ops(runtime.redis, { config: runtime.config, needs: STORE_NEEDS.panel }))
    .use(operation(runtime, benchmarks))
    .use(couriers(runtime))
    .use(shipments({ ...runtime, archive }, insights))
    .use(webhooks({ ...runtime, archive }))
    .use(merchants(runtime, mailer))
    .use(slipRoute(runtime))
    .use(trackingRoute(runtime, archive))
    .use(operatorErrors())
    .use(openApiRoute("/panel/api/openapi.json", (): readonly Route[] => app.routes, PANEL_API))
    .use(
      viewerRoutes({
        path: "/panel/docs",
        title: "Waybill control panel API",
        document: "/panel/api/openapi.json",
        links: {
          ...{ Webhooks: "/webhooks/docs", "Error codes": "/panel/errors" },
          ...{ Documents: "/docs", "Control panel": "/" },
        },
      }),
    )
    .use(documentRoutes())
    .use(webRoutes(runtime))
    .use(people(runtime, mailer, insights))
    .onStop(() => mailer.close());
  if (insights) {
    app.use(analyticsRoutes(runtime, insights)).use(sharedQualityRoute(runtime, insights));
  }
  return everyRouteDeclared(app);
}

// In groups: TypeScript infers the types of a single chain of all of them no longer.

function operation(runtime: Runtime, benchmarks: Benchmarks) {
  return new Elysia({ name: "operation" })
    .use(overviewRoute(runtime, benchmarks))
    .use(partitionsRoute(runtime))
    .use(deadLetterRoutes(runtime))
    .use(jobsRoute(runtime))
    .use(doctorRoute(runtime, benchmarks))
    .use(clockRoute(runtime));
}

function couriers(runtime: Runtime) {
  return new Elysia({ name: "courier pages" })
    .use(mappingRoutes(runtime))
    .use(catalogueFileRoutes(runtime))
    .use(remapRoutes(runtime))
    .use(qualityLinkRoutes(runtime))
    .use(courierRoutes(runtime));
}

function shipments(deps: Runtime & PanelDeps, insights?: Insights) {
  return new Elysia({ name: "shipment pages" })
    .use(numberConflictsRoute(deps))
    .use(traceRoute(deps))
    .use(archiveRoutes(deps))
    .use(eventsRoute(deps, insights))
    .use(firstDayRoute(deps))
    .use(shipmentRoutes(deps, insights));
}

function webhooks(runtime: Runtime & PanelDeps) {
  return new Elysia({ name: "webhook pages" })
    .use(webhookRoutes(runtime))
    .use(webhookTestRoutes(runtime))
    .use(webhookStatsRoute(runtime))
    .use(missedRoute(runtime))
    .use(deliveryRoutes(runtime))
    .use(webhookKitRoutes(runtime));
}

function merchants(runtime: Runtime, mailer: Mailer) {
  return new Elysia({ name: "merchant pages" })
    .use(channelRoutes(runtime))
    .use(companyRoutes(runtime))
    .use(boxRoutes(runtime))
    .use(changeChannelRoute(runtime))
    .use(channelSettingsRoutes(runtime))
    .use(channelCourierRoutes(runtime))
    .use(templateRoutes(runtime, mailer))
    .use(usageRoute(runtime))
    .use(panelOrdersRoute(runtime))
    .use(addressChecksRoute(runtime));
}

function people(runtime: Runtime, mailer: Mailer, insights: Insights | undefined) {
  return new Elysia({ name: "people" })
    .use(sessionRoutes(runtime))
    .use(invitationRoutes(runtime, mailer))
    .use(accountRoutes(runtime, mailer))
    .use(meRoutes(runtime))
    .use(auditRoute(runtime, insights));
}
