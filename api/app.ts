/** The whole merchant API on one page: document 1 and the operator's probes. */
import { Elysia } from "elysia";
import { addressCheckRoute } from "#api/addresses/check.ts";
import { tokenRoute } from "#api/auth/token.ts";
import { deliveryTimesRoute } from "#api/couriers/delivery-times.ts";
import { efficiencyIndexRoute } from "#api/couriers/efficiency-index.ts";
import type { ApiDeps } from "#api/deps.ts";
import { errorResponse } from "#api/error-response.ts";
import { jobRoute } from "#api/jobs/job.ts";
import { confirmLabelsRoute } from "#api/labels/confirm.ts";
import { createLabelRoute } from "#api/labels/create.ts";
import { openApiRoute } from "#api/openapi/document.ts";
import { orderRoute } from "#api/orders/detail.ts";
import { ordersRoute } from "#api/orders/list.ts";
import { parcelsRoute } from "#api/parcels/collection.ts";
import { parcelRoute } from "#api/parcels/parcel.ts";
import { sandboxRoute } from "#api/sandbox/sandbox.ts";
import { createRoute } from "#api/shipments/create.ts";
import { detailRoute } from "#api/shipments/detail.ts";
import { importRoute } from "#api/shipments/import.ts";
import { notifyRoute } from "#api/shipments/notify.ts";
import { searchRoute } from "#api/shipments/search.ts";
import { stockReleaseRoute } from "#api/shipments/stock-release.ts";
import { toProblem } from "#core/http/errors.ts";
import { ops } from "#core/http/ops.ts";
import { requestMetrics } from "#core/http/request-metrics.ts";
import { Problem } from "#core/problem.ts";

export function createApiApp(deps: ApiDeps) {
  const { redis, log, config } = deps;
  const app = new Elysia()
    .onError(({ code, error, request, set }) => {
      const problem =
        code === "NOT_FOUND" ? noRoute(app.routes, request) : toProblem(error, redis, log);
      set.status = problem.status;
      return errorResponse(problem);
    })
    .use(requestMetrics("api"))
    .use(ops(redis, { config }))
    .use(openApiRoute())
    .use(tokenRoute(deps))
    .use(createRoute(deps))
    .use(searchRoute(deps))
    .use(detailRoute(deps))
    .use(importRoute(deps))
    .use(stockReleaseRoute(deps))
    .use(notifyRoute(deps))
    .use(jobRoute(deps))
    .use(sandboxRoute(deps))
    .use(ordersRoute(deps))
    .use(orderRoute(deps))
    .use(parcelsRoute(deps))
    .use(parcelRoute(deps))
    .use(addressCheckRoute(deps))
    .use(createLabelRoute(deps))
    .use(confirmLabelsRoute(deps))
    .use(deliveryTimesRoute(deps))
    .use(efficiencyIndexRoute(deps));
  return app;
}

interface Route {
  readonly method: string;
  readonly path: string;
}

/** Another method on a path that exists is 405, any other path 404. */
function noRoute(routes: readonly Route[], request: Request): Problem {
  const { pathname } = new URL(request.url);
  const allowed = routes.filter(({ path }) => matches(path, pathname)).map(({ method }) => method);
  if (allowed.length === 0) return new Problem(404, "NOT_FOUND", "There is no such path.");
  const allow = [...new Set(allowed)].join(", ");
  return new Problem(405, "METHOD_NOT_ALLOWED", `Only ${allow} is allowed here.`, {
    headers: { allow },
  });
}

function matches(path: string, pathname: string): boolean {
  const parts = pathname.split("/");
  const pattern = path.split("/");
  return (
    parts.length === pattern.length &&
    pattern.every((part, at) => (part.startsWith(":") ? parts[at] !== "" : part === parts[at]))
  );
}
