/** `GET /panel/api/webhooks/{endpointId}/failures`: deliveries that were given up, grouped by what their last attempt said. */
import { type Static, Type } from "@sinclair/typebox";
import { route } from "#core/platform/http/access.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import type { Delivery } from "#core/webhooks/store/deliveries/deliveries.ts";
import { type LogCursor, listDeliveries } from "#core/webhooks/store/deliveries/delivery-log.ts";
import { panelRoutes } from "#panel/server/panel-routes.ts";
import { endpointOf, instantOfQuery } from "./webhook-access.ts";

const FAILURES = limit(
  1_000,
  "latest failed deliveries that are grouped by their error",
  "older ones are not counted",
);
const READ_TOGETHER = 200;

const FailureGroup = Type.Object({
  error: Type.String({ description: "of the last attempt, or why there was none" }),
  deliveries: Type.Integer(),
  since: Type.String({ description: "creation of the oldest of them" }),
  until: Type.String({ description: "creation of the newest" }),
  deliveryIds: Type.Array(Type.String(), { description: "newest first" }),
});

const Failures = Type.Object({
  groups: Type.Array(FailureGroup, { description: "most deliveries first" }),
  isComplete: Type.Boolean({ description: "false: there are older ones" }),
});

export function failuresRoute(runtime: Runtime) {
  const { live } = runtime;
  return panelRoutes(runtime, "webhook failures").get(
    "/panel/api/webhooks/:endpointId/failures",
    async ({ params, query: { from, to } }) => {
      const { endpoint, channel } = endpointOf(await live.refresh(), params.endpointId);
      const fromMs = from ? instantOfQuery("from", from, false) : 0;
      const toMs = to ? instantOfQuery("to", to, true) : Number.MAX_SAFE_INTEGER;
      const owner = { companyId: channel.companyId, endpointId: endpoint.id };
      const { deliveries, isComplete } = await readFailed(runtime, owner, { fromMs, toMs });
      return { groups: groupsOf(deliveries), isComplete };
    },
    route({
      access: { can: "webhooks:read", of: "endpoint" },
      query: Type.Object({
        from: Type.Optional(Type.String({ description: "created at or after" })),
        to: Type.Optional(Type.String({ description: "created at or before" })),
      }),
      response: Failures,
      summary: "Deliveries that were given up, by their error",
    }),
  );
}

async function readFailed(
  { redis, live }: Runtime,
  { companyId, endpointId }: { readonly companyId: number; readonly endpointId: string },
  window: { readonly fromMs: number; readonly toMs: number },
): Promise<{ readonly deliveries: readonly Delivery[]; readonly isComplete: boolean }> {
  const deliveries: Delivery[] = [];
  let cursor: LogCursor | null = null;
  do {
    const page = { ...window, cursor, limit: READ_TOGETHER, state: "failed" } as const;
    const found = await listDeliveries(redis, companyId, endpointId, page, live.now());
    deliveries.push(...found.deliveries);
    cursor = found.cursor;
  } while (cursor !== null && deliveries.length < FAILURES);
  return { deliveries: deliveries.slice(0, FAILURES), isComplete: cursor === null };
}

function groupsOf(deliveries: readonly Delivery[]): Static<typeof FailureGroup>[] {
  const groups = Map.groupBy(deliveries, errorOf);
  return [...groups]
    .map(([error, own]) => {
      const times = own.map(({ createdAtMs }) => createdAtMs);
      return {
        error,
        deliveries: own.length,
        since: new Date(Math.min(...times)).toISOString(),
        until: new Date(Math.max(...times)).toISOString(),
        deliveryIds: own.map(({ deliveryId }) => deliveryId),
      };
    })
    .sort((one, other) => other.deliveries - one.deliveries);
}

function errorOf({ attempts, reason }: Delivery): string {
  const last = attempts.at(-1);
  if (!last) return reason ?? "";
  return last.error ?? `status ${last.httpStatus}`;
}
