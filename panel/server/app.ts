/** The panel's HTTP API on one page. Errors are problem documents. */
import { Elysia } from "elysia";
import type { Benchmarks } from "#analytics/benchmarks.ts";
import type { Insights } from "#analytics/insights.ts";
import { problemResponse } from "#core/platform/errors/problem.ts";
import { everyRouteDeclared } from "#core/platform/http/access.ts";
import { toProblem } from "#core/platform/http/errors.ts";
import { explanationOf } from "#core/platform/http/errors-page.ts";
import { noRoute, type Route } from "#core/platform/http/no-route.ts";
import { requestIds } from "#core/platform/http/request-ids.ts";
import { requestMetrics } from "#core/platform/http/request-metrics.ts";
import { ONE_ROUTER, requestTarget } from "#core/platform/http/request-target.ts";
import { openApiRoute } from "#core/platform/openapi/document.ts";
import { viewerRoutes } from "#core/platform/openapi/viewer.ts";
import { createMailer, type Mailer } from "#core/platform/process/mail.ts";
import { STORE_NEEDS } from "#core/platform/redis/store-needs.ts";
import { ops } from "#core/runtime/ops.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { NO_ARCHIVE, type SearchableArchive } from "#core/search/store/archive-search.ts";
import { accountRoutes } from "#panel/server/accounts/accounts.ts";
import { auditRoute } from "#panel/server/accounts/audit.ts";
import { invitationRoutes } from "#panel/server/accounts/invitations.ts";
import { meRoutes } from "#panel/server/accounts/me.ts";
import { sessionRoutes } from "#panel/server/accounts/session.ts";
import { incidentRoutes } from "#panel/server/alarms/incidents.ts";
import { receiverRoutes } from "#panel/server/alarms/receivers.ts";
import { analyticsRoutes } from "#panel/server/benchmarks/analytics.ts";
import { pictureRoutes } from "#panel/server/benchmarks/pictures.ts";
import { addressChecksRoute } from "#panel/server/companies/address-checks.ts";
import { boxRoutes } from "#panel/server/companies/boxes.ts";
import { channelCourierRoutes } from "#panel/server/companies/channel-couriers.ts";
import { channelSettingsRoutes } from "#panel/server/companies/channel-settings.ts";
import { channelRoutes } from "#panel/server/companies/channels.ts";
import { companyRoutes } from "#panel/server/companies/companies.ts";
import { companySetupRoutes } from "#panel/server/companies/company-setup.ts";
import { homeRoute } from "#panel/server/companies/home.ts";
import { channelStepsRoute } from "#panel/server/companies/onboarding.ts";
import { panelOrdersRoute } from "#panel/server/companies/orders.ts";
import { slipRoute } from "#panel/server/companies/slips.ts";
import { suspensionRoute } from "#panel/server/companies/suspension.ts";
import { templateRoutes } from "#panel/server/companies/templates.ts";
import { usageRoute } from "#panel/server/companies/usage.ts";
import { catalogueFileRoutes } from "#panel/server/couriers/catalogue-file.ts";
import { courierRoutes } from "#panel/server/couriers/couriers.ts";
import { doctorRoute } from "#panel/server/couriers/doctor.ts";
import { firstDayRoute } from "#panel/server/couriers/first-day.ts";
import { courierInboxRoute } from "#panel/server/couriers/inbox.ts";
import { mappingRoutes } from "#panel/server/couriers/mapping.ts";
import { numberConflictsRoute } from "#panel/server/couriers/number-conflicts.ts";
import { qualityLinkRoutes, sharedQualityRoute } from "#panel/server/couriers/quality-links.ts";
import { remapRoutes } from "#panel/server/couriers/remaps.ts";
import { changeContext } from "#panel/server/http/change-context.ts";
import { forgetKey } from "#panel/server/http/idempotency.ts";
import { archiveRoutes } from "#panel/server/operations/archive.ts";
import { clockRoute } from "#panel/server/operations/clock.ts";
import { deadLetterRoutes } from "#panel/server/operations/dead-letters.ts";
import { jobFailuresRoute, jobsRoute } from "#panel/server/operations/jobs.ts";
import { overviewRoute } from "#panel/server/operations/overview.ts";
import { partitionsRoute } from "#panel/server/operations/partitions.ts";
import { requestsRoute } from "#panel/server/operations/requests.ts";
import { documentRoutes } from "#panel/server/pages/documents.ts";
import { securityTxtRoute } from "#panel/server/pages/security-txt.ts";
import { notFoundPage, webRoutes } from "#panel/server/pages/web.ts";
import { closingRoutes } from "#panel/server/setup/close-entity.ts";
import { exportRoute } from "#panel/server/setup/export.ts";
import { eventsRoute } from "#panel/server/shipments/events.ts";
import { shipmentRoutes } from "#panel/server/shipments/shipments.ts";
import { traceRoute } from "#panel/server/shipments/trace.ts";
import { trackingRoute } from "#panel/server/shipments/tracking.ts";
import { deliveryRoutes } from "#panel/server/webhooks/deliveries.ts";
import { webhookRoutes } from "#panel/server/webhooks/webhooks.ts";
import { failuresRoute } from "#panel/server/webhooks/webhooks-failures.ts";
import { webhookKitRoutes } from "#panel/server/webhooks/webhooks-kit.ts";
import { missedRoute } from "#panel/server/webhooks/webhooks-missed.ts";
import { webhookStatsRoute } from "#panel/server/webhooks/webhooks-stats.ts";
import { webhookTestRoutes } from "#panel/server/webhooks/webhooks-test.ts";
import type { PanelDeps } from "./caller.ts";
import { operatorErrors } from "./errors.ts";
import { PANEL_API } from "./openapi.ts";

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
    .use(changeContext())
    .use(requestMetrics("panel"))
    .use(requestTarget())
    .use(ops(runtime.redis, { config: runtime.config, needs: STORE_NEEDS.panel }))
    .use(operation(runtime, benchmarks, insights))
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
          Webhooks: "/webhooks/docs",
          "Error codes": "/panel/errors",
          Documents: "/docs",
          "Control panel": "/",
        },
      }),
    )
    .use(documentRoutes())
    .use(webRoutes(runtime))
    .use(people(runtime, mailer, insights))
    .onStop(() => mailer.close());
  if (insights) {
    app
      .use(analyticsRoutes(runtime, insights))
      .use(pictureRoutes(runtime, insights))
      .use(homeRoute({ ...runtime, archive }, insights))
      .use(sharedQualityRoute(runtime, insights));
  }
  return everyRouteDeclared(app);
}

// In groups: TypeScript infers the types of a single chain of all of them no longer.

function operation(runtime: Runtime, benchmarks: Benchmarks, insights: Insights | undefined) {
  return new Elysia({ name: "operation" })
    .use(overviewRoute(runtime, benchmarks, insights))
    .use(partitionsRoute(runtime))
    .use(deadLetterRoutes(runtime))
    .use(jobsRoute(runtime))
    .use(jobFailuresRoute(runtime))
    .use(requestsRoute(runtime))
    .use(doctorRoute(runtime, benchmarks))
    .use(exportRoute(runtime))
    .use(incidentRoutes(runtime))
    .use(receiverRoutes(runtime))
    .use(closingRoutes(runtime))
    .use(clockRoute(runtime));
}

function couriers(runtime: Runtime) {
  return new Elysia({ name: "courier pages" })
    .use(mappingRoutes(runtime))
    .use(catalogueFileRoutes(runtime))
    .use(remapRoutes(runtime))
    .use(qualityLinkRoutes(runtime))
    .use(courierInboxRoute(runtime))
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
    .use(failuresRoute(runtime))
    .use(deliveryRoutes(runtime))
    .use(webhookKitRoutes(runtime))
    .use(securityTxtRoute(runtime));
}

function merchants(runtime: Runtime, mailer: Mailer) {
  return new Elysia({ name: "merchant pages" })
    .use(channelRoutes(runtime))
    .use(companyRoutes(runtime))
    .use(boxRoutes(runtime))
    .use(companySetupRoutes(runtime))
    .use(suspensionRoute(runtime))
    .use(channelStepsRoute(runtime))
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
