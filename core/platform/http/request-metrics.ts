/** Answer times of a role's requests, by status class, and their traces. An app's `onError` sets `set.status` to what it answers. */
import { Elysia } from "elysia";
import { requestSeconds } from "#core/platform/process/metrics.ts";
import { requestTraces } from "./request-traces.ts";

const STATUS_CLASSES = ["2xx", "3xx", "4xx", "5xx"];

export function requestMetrics(role: "ingest" | "api" | "panel") {
  for (const status of STATUS_CLASSES) requestSeconds.zero({ role, status });
  const startedAt = new WeakMap<Request, number>();
  const app = new Elysia({ name: "request-metrics", seed: role })
    .onRequest(({ request }) => void startedAt.set(request, performance.now()))
    .onAfterResponse({ as: "global" }, ({ request, set, responseValue }) => {
      const startedMs = startedAt.get(request);
      if (startedMs === undefined) return;
      const answered: unknown = responseValue;
      const status = answered instanceof Response ? answered.status : (set.status ?? 200);
      const seconds = (performance.now() - startedMs) / 1000;
      requestSeconds.observe({ role, status: `${String(status).slice(0, 1)}xx` }, seconds);
    });
  // By itself: in the chain it would be part of the type of every app.
  app.use(requestTraces(role));
  return app;
}
