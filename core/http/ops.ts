/** `GET /healthz`, `/readyz` and `/metrics`, the same on every port. */
import { Elysia } from "elysia";
import { registry } from "#core/metrics.ts";

/** Null when the role can serve, else one sentence why it cannot. */
export type Readiness = () => Promise<string | null>;

export function ops(readiness: Readiness) {
  return new Elysia({ name: "ops" })
    .get("/healthz", () => ({ status: "ok" }))
    .get("/readyz", async ({ set }) => {
      const reason = await readiness();
      if (reason === null) return { status: "ready" };
      set.status = 503;
      return { status: "not ready", reason };
    })
    .get("/metrics", async () => {
      const body = await registry.metrics();
      return new Response(body, { headers: { "content-type": registry.contentType } });
    });
}
