/** The panel's HTTP API on one page. Errors are problem documents. */
import { Elysia } from "elysia";
import type { Benchmarks } from "#analytics/benchmarks.ts";
import { toProblem } from "#core/http/errors.ts";
import { ops } from "#core/http/ops.ts";
import { Problem, problemResponse } from "#core/problem.ts";
import type { Runtime } from "#core/runtime.ts";
import { authorizeOperator } from "#panel/authorize.ts";
import { clockRoute } from "#panel/routes/clock.ts";
import { overviewRoute } from "#panel/routes/overview.ts";

export function createPanelApp(runtime: Runtime, benchmarks: Benchmarks) {
  const { redis, log, secrets } = runtime;
  return new Elysia()
    .onError(({ code, error }) => problemResponse(problemOf(code, error, runtime)))
    .use(ops(redis))
    .onRequest(({ request }) => {
      const { pathname } = new URL(request.url);
      if (!pathname.startsWith("/panel/api/")) return;
      authorizeOperator(request.headers.get("authorization"), secrets.panelToken);
      log.debug({ method: request.method, path: pathname }, "panel call");
    })
    .use(overviewRoute(runtime, benchmarks))
    .use(clockRoute(runtime));
}

function problemOf(code: string | number, error: unknown, { redis, log }: Runtime): Problem {
  if (code === "NOT_FOUND") return new Problem(404, "NOT_FOUND", "There is no such path.");
  if (code === "PARSE") return new Problem(400, "MALFORMED_BODY", "The body is not valid JSON.");
  return toProblem(error, redis, log);
}
