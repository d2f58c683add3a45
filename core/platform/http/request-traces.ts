/** A span for every request of a role's calls: part of the caller's trace if it sends `traceparent`. */
import { Elysia } from "elysia";
import { beginTrace, currentSpan, isTracing, withSpan } from "#core/platform/process/tracing.ts";

/** Of Elysia, whose type does not tell. */
type Handle = (request: Request, ...others: unknown[]) => Promise<Response> | Response;

/** Probes come every few seconds and say nothing. */
const PROBES: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/metrics"]);
const SERVER_ERROR = 500;

/** Adds nothing to the app unless traces are on. */
export function requestTraces(role: "ingest" | "api" | "panel") {
  const plugin = new Elysia({ name: "request-traces", seed: role });
  if (!isTracing()) return plugin;
  return plugin
    .wrap((handle) => async (request: Request, ...others: unknown[]) => {
      const answer = () => (handle as unknown as Handle)(request, ...others);
      const span = PROBES.has(pathOf(request))
        ? null
        : beginTrace("server", request.method, request.headers.get("traceparent"));
      if (span === null) return answer();
      span.set({
        "http.request.method": request.method,
        "url.scheme": request.url.slice(0, request.url.indexOf(":")),
        "waybill.role": role,
      });
      const response = await withSpan(span, answer);
      const { status, headers } = response;
      span.set({ "http.response.status_code": status });
      const requestId = headers.get("x-request-id");
      if (requestId !== null) span.set({ "waybill.request_id": requestId });
      if (status >= SERVER_ERROR) span.set({ "error.type": String(status) });
      span.end(status >= SERVER_ERROR ? `HTTP ${status}` : undefined);
      return response;
    })
    .onTransform({ as: "global" }, ({ request, route }) => {
      const span = currentSpan();
      span?.rename(`${request.method} ${route}`);
      // OpenTelemetry asks for the path and lets it be redacted: ids and tokens in paths are nobody's business.
      span?.set({ "http.route": route, "url.path": route });
    });
}

function pathOf({ url }: Request): string {
  const from = url.indexOf("/", url.indexOf("://") + 3);
  const query = url.indexOf("?", from);
  return url.slice(from, query === -1 ? undefined : query);
}
