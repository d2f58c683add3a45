/** The whole ingest API on one page: document 2 and the operator's probes. CORS stays off. */
import { Elysia } from "elysia";
import { toProblem } from "#core/http/errors.ts";
import { ops } from "#core/http/ops.ts";
import { Problem, problemResponse } from "#core/problem.ts";
import type { Runtime } from "#core/runtime.ts";
import { eventRoutes } from "#ingest/routes/events.ts";

/** Methods of the paths that exist; another method on them is 405, any other path 404. */
const METHODS: Readonly<Record<string, string>> = {
  "/v1/events": "POST",
  "/v1/events/validate": "POST",
  "/v1/ping": "GET",
  "/healthz": "GET",
  "/readyz": "GET",
  "/metrics": "GET",
};

export function createIngestApp(runtime: Runtime) {
  return new Elysia()
    .onError(({ code, error, request }) => {
      const problem =
        code === "NOT_FOUND" ? noRoute(request) : toProblem(error, runtime.redis, runtime.log);
      return problemResponse(problem);
    })
    .use(ops(runtime.redis))
    .use(eventRoutes(runtime));
}

function noRoute(request: Request): Problem {
  const allow = METHODS[new URL(request.url).pathname];
  if (allow === undefined) return new Problem(404, "NOT_FOUND", "There is no such path.");
  return new Problem(405, "METHOD_NOT_ALLOWED", `Only ${allow} is allowed here.`, {
    headers: { allow },
  });
}
