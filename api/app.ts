/** The whole merchant API on one page: document 1 and the operator's probes. */
import { Elysia } from "elysia";
import { tokenRoute } from "#api/auth/token.ts";
import { deliveryTimesRoute } from "#api/couriers/delivery-times.ts";
import { efficiencyIndexRoute } from "#api/couriers/efficiency-index.ts";
import type { ApiDeps } from "#api/deps.ts";
import { errorResponse } from "#api/error-response.ts";
import { createRoute } from "#api/shipments/create.ts";
import { detailRoute } from "#api/shipments/detail.ts";
import { searchRoute } from "#api/shipments/search.ts";
import { toProblem } from "#core/http/errors.ts";
import { ops } from "#core/http/ops.ts";
import { requestSeconds } from "#core/metrics.ts";
import { Problem } from "#core/problem.ts";

export function createApiApp(deps: ApiDeps) {
  const { redis, log } = deps;
  const startedAt = new WeakMap<Request, number>();
  const app = new Elysia()
    .onRequest(({ request }) => void startedAt.set(request, performance.now()))
    .onError(({ code, error, request }) =>
      errorResponse(
        code === "NOT_FOUND" ? noRoute(app.routes, request) : toProblem(error, redis, log),
      ),
    )
    .onAfterResponse(({ request, set }) => {
      const seconds = (performance.now() - (startedAt.get(request) ?? performance.now())) / 1000;
      const status = `${String(set.status ?? 200).slice(0, 1)}xx`;
      requestSeconds.observe({ role: "api", status }, seconds);
    })
    .use(ops(redis))
    .use(tokenRoute(deps))
    .use(createRoute(deps))
    .use(searchRoute(deps))
    .use(detailRoute(deps))
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
