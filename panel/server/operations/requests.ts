/** `GET /panel/api/requests`: the caller's refused and failed API calls; of operators those of all. */
import { type Static, Type } from "@sinclair/typebox";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import {
  ALL_CALLERS,
  REQUESTS_KEPT_DAYS,
  type RefusedRequest,
  readRefusedRequests,
} from "#core/platform/http/refused-requests.ts";
import { jsonValue } from "#core/platform/schema/json-value.ts";
import { nullableText as text } from "#core/platform/schema/nullable.ts";
import { type PanelDeps, tenantOf } from "#panel/server/caller.ts";
import { listQuery, pageBehind } from "#panel/server/http/list-page.ts";
import { panelRoutes } from "#panel/server/panel-routes.ts";
import { instantOfQuery } from "#panel/server/webhooks/webhook-access.ts";

const RequestItem = Type.Object({
  at: Type.String({ description: "UTC" }),
  method: Type.String(),
  route: Type.String({ description: "pattern; empty where the path has none" }),
  status: Type.Integer(),
  code: Type.String({ description: "of the error" }),
  key: Type.Union([Type.String(), Type.Null()], { description: "code of the API key" }),
  requestId: Type.String({ description: "as in X-Request-Id and in the log" }),
  tenant: Type.String({ description: "company or courier; empty = nobody known" }),
  body: jsonValue("names and types of the body's members, without values"),
});

const Requests = Type.Object({
  items: Type.Array(RequestItem, { description: "newest first" }),
  nextCursor: text,
});

const RequestsQuery = Type.Composite([
  listQuery,
  Type.Object({
    requestId: Type.Optional(Type.String()),
    status: Type.Optional(Type.String({ description: "such as 422, or a class such as 4xx" })),
    route: Type.Optional(Type.String({ description: "part of it" })),
    from: Type.Optional(Type.String({ description: "ISO 8601; at or after it" })),
  }),
]);

export function requestsRoute(deps: PanelDeps) {
  const { redis, live } = deps;
  return panelRoutes(deps, "requests").get(
    "/panel/api/requests",
    async ({ query, caller }) => {
      const tenant = caller.kind === "operator" ? ALL_CALLERS : tenantOf(caller);
      return pageOf(await readRefusedRequests(redis, tenant, live.now()), query);
    },
    route({
      access: { can: "requests:read", of: "caller" },
      query: RequestsQuery,
      response: Requests,
      summary: `API calls of the last ${REQUESTS_KEPT_DAYS} days that were refused or failed`,
    }),
  );
}

const STATUS = /^([1-5]\d\d|[1-5]xx)$/;

/** @throws {Problem} 422 */
function pageOf(
  all: readonly RefusedRequest[],
  query: Static<typeof RequestsQuery>,
): Static<typeof Requests> {
  const { requestId, status = "", route: wanted = "" } = query;
  if (status !== "" && !STATUS.test(status)) {
    throw new Problem(422, "INVALID_QUERY", "status is a status such as 422, or a class as 4xx.");
  }
  const fromMs = query.from ? instantOfQuery("from", query.from, false) : 0;
  const matching = all
    .filter((one) => !requestId || one.requestId === requestId)
    .filter((one) => status === "" || String(one.status).startsWith(status.replace("xx", "")))
    .filter((one) => one.route.includes(wanted) && one.atMs >= fromMs);
  const page = pageBehind(matching, keyOf, query);
  if (page === null) return { items: [], nextCursor: null };
  return {
    items: page.items.map(({ atMs, ...one }) => ({ ...one, at: new Date(atMs).toISOString() })),
    nextCursor: page.nextCursor,
  };
}

function keyOf({ atMs, requestId }: RefusedRequest): string {
  return `${atMs} ${requestId}`;
}
