/** The whole merchant API on one page: document 1 and the operator's probes. */
import { type AnyElysia, Elysia } from "elysia";
import { addressCheckRoute } from "#api/addresses/check.ts";
import { DRAFT_RATE_HEADERS } from "#api/auth/authenticated.ts";
import { tokenRoute } from "#api/auth/token.ts";
import { channelRoute } from "#api/channel/channel.ts";
import { deliveryTimesRoute } from "#api/couriers/delivery-times.ts";
import { efficiencyIndexRoute } from "#api/couriers/efficiency-index.ts";
import { onTimeRoute } from "#api/couriers/on-time.ts";
import { promiseRoute } from "#api/couriers/promise.ts";
import type { ApiDeps } from "#api/deps.ts";
import { errorResponse } from "#api/http/error-response.ts";
import { jobRoute } from "#api/jobs/job.ts";
import { confirmLabelsRoute } from "#api/labels/confirm.ts";
import { createLabelRoute } from "#api/labels/create.ts";
import { listLabelsRoute } from "#api/labels/list.ts";
import { readLabelRoute } from "#api/labels/read.ts";
import { transmissionRoute } from "#api/labels/transmission.ts";
import { voidLabelRoute } from "#api/labels/void.ts";
import { MERCHANT_API } from "#api/openapi.ts";
import { orderRoute } from "#api/orders/detail.ts";
import { ordersRoute } from "#api/orders/list.ts";
import { parcelsRoute } from "#api/parcels/collection.ts";
import { parcelRoute } from "#api/parcels/parcel.ts";
import { merchantErrors } from "#api/reference/errors.ts";
import { sandboxRoute } from "#api/sandbox/sandbox.ts";
import { correctRoute } from "#api/shipments/correct.ts";
import { createRoute } from "#api/shipments/create.ts";
import { detailRoute } from "#api/shipments/detail.ts";
import { importRoute } from "#api/shipments/import.ts";
import { notificationRoute } from "#api/shipments/notification.ts";
import { notifyRoute } from "#api/shipments/notify.ts";
import { releaseRoute } from "#api/shipments/release.ts";
import { searchRoute } from "#api/shipments/search.ts";
import { stockReleaseRoute } from "#api/shipments/stock-release.ts";
import { everyRouteDeclared } from "#core/platform/http/access.ts";
import { compression } from "#core/platform/http/compression.ts";
import { toProblem } from "#core/platform/http/errors.ts";
import { exampleRoutes } from "#core/platform/http/example-routes.ts";
import { literalPaths, noRoute, type Route } from "#core/platform/http/no-route.ts";
import { requestLog } from "#core/platform/http/refused-requests.ts";
import { requestIds } from "#core/platform/http/request-ids.ts";
import { requestMetrics } from "#core/platform/http/request-metrics.ts";
import { ONE_ROUTER, requestTarget } from "#core/platform/http/request-target.ts";
import { openApiRoute } from "#core/platform/openapi/document.ts";
import { leadTo, viewerRoutes } from "#core/platform/openapi/viewer.ts";
import { STORE_NEEDS } from "#core/platform/redis/store-needs.ts";
import { ops } from "#core/runtime/ops.ts";
import { clientPackageRoutes } from "./reference/client-packages.ts";

export function createApiApp(deps: ApiDeps) {
  const { redis, log, config } = deps;
  const keep = requestLog({ redis, log, now: deps.live.now });
  const app = new Elysia(ONE_ROUTER)
    .onError(({ code, error, path, request, set, route }) => {
      const problem =
        code === "NOT_FOUND"
          ? noRoute(app.routes, path, request.method)
          : toProblem(error, redis, log);
      set.status = problem.status;
      keep({ request, route: code === "NOT_FOUND" ? undefined : route, problem });
      // A missing resource and another channel's are answered the same, but for the headers that document 1 asks for.
      if (problem.status !== 429) for (const name of DRAFT_RATE_HEADERS) delete set.headers[name];
      return errorResponse(problem);
    })
    .use(requestIds())
    .use(compression())
    .use(requestMetrics("api"))
    .use(requestTarget())
    .use(literalPaths((): readonly Route[] => app.routes))
    .use(ops(redis, { config, needs: STORE_NEEDS.api, refresh: deps.live.refresh }))
    .use(openApiRoute("/v2/openapi.json", (): readonly Route[] => app.routes, MERCHANT_API))
    .use(
      viewerRoutes({
        path: "/v2/docs",
        title: "Waybill merchant API",
        document: "/v2/openapi.json",
        links: {
          "Error codes": "/v2/errors",
          "Clients for npm and Python": "/v2/clients/",
          "Example in TypeScript": "/v2/examples/merchant.ts",
          "Example in Python": "/v2/examples/merchant.py",
          Guide: `${config.publicUrl}/docs/merchants`,
          Webhooks: `${config.publicUrl}/docs/webhooks`,
          "Test mode": `${config.publicUrl}/docs/test-mode`,
        },
        keys: { tokenPath: "/v2/auth/token", scheme: "accessToken" },
      }),
    )
    .use(leadTo("/v2/docs"));
  for (const routes of merchantRoutes(deps)) app.use(routes);
  return everyRouteDeclared(app);
}

/** As plain plugins: nobody reads their types off the app, and TypeScript cannot infer those of so long a chain. */
function merchantRoutes(deps: ApiDeps): AnyElysia[] {
  return [
    merchantErrors(),
    exampleRoutes("/v2/examples", "merchant"),
    clientPackageRoutes(deps.config),
    tokenRoute(deps),
    channelRoute(deps),
    createRoute(deps),
    searchRoute(deps),
    detailRoute(deps),
    correctRoute(deps),
    importRoute(deps),
    stockReleaseRoute(deps),
    releaseRoute(deps),
    notifyRoute(deps),
    notificationRoute(deps),
    jobRoute(deps),
    sandboxRoute(deps),
    ordersRoute(deps),
    orderRoute(deps),
    parcelsRoute(deps),
    parcelRoute(deps),
    addressCheckRoute(deps),
    createLabelRoute(deps),
    listLabelsRoute(deps),
    readLabelRoute(deps),
    voidLabelRoute(deps),
    confirmLabelsRoute(deps),
    transmissionRoute(deps),
    deliveryTimesRoute(deps),
    efficiencyIndexRoute(deps),
    onTimeRoute(deps),
    promiseRoute(deps),
  ];
}
