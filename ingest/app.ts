/** The whole ingest API on one page: document 2 and the operator's probes. CORS stays off. */
import { Elysia } from "elysia";
import { Problem, problemResponse } from "#core/platform/errors/problem.ts";
import { everyRouteDeclared } from "#core/platform/http/access.ts";
import { toProblem } from "#core/platform/http/errors.ts";
import { explanationOf } from "#core/platform/http/errors-page.ts";
import { exampleRoutes } from "#core/platform/http/example-routes.ts";
import { noRoute, type Route } from "#core/platform/http/no-route.ts";
import { type Peer, peerOf } from "#core/platform/http/peer.ts";
import { requestLog } from "#core/platform/http/refused-requests.ts";
import { requestIds } from "#core/platform/http/request-ids.ts";
import { requestMetrics } from "#core/platform/http/request-metrics.ts";
import { ONE_ROUTER, requestTarget } from "#core/platform/http/request-target.ts";
import { openApiRoute } from "#core/platform/openapi/document.ts";
import { leadTo, viewerRoutes } from "#core/platform/openapi/viewer.ts";
import { STORE_NEEDS } from "#core/platform/redis/store-needs.ts";
import { ops } from "#core/runtime/ops.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import {
  type AuthenticateDeps,
  admit,
  bearerOf,
  type FindPeer,
  UNCOUNTED_HEADERS,
  withHeaders,
} from "#ingest/authenticate.ts";
import { openIntake } from "#ingest/messages/intake.ts";
import { accessTokens } from "#ingest/oauth/access-token.ts";
import { COURIER_API } from "#ingest/openapi.ts";
import { courierErrors } from "#ingest/reference/errors.ts";
import { eventRoutes } from "#ingest/routes/events.ts";
import { referenceRoutes } from "#ingest/routes/reference.ts";
import { tokenRoute } from "#ingest/routes/token.ts";

type Server = Bun.Server<unknown> | null;

/** @param connectionFrom the far end of a connection that TLS was ended for, by its loopback port */
export function createIngestApp(
  runtime: Runtime,
  connectionFrom: (port: number) => Peer | null = () => null,
) {
  const { redis, log, config, secrets } = runtime;
  const intake = openIntake(redis, runtime.live, config.logHighWater);
  const deps = { ...runtime, intake, accessTokens: accessTokens(secrets.jwtSecret) };

  function findPeer(request: Request, server: Server): Peer {
    const end = server?.requestIP(request);
    const plain = { address: end?.address ?? "", certificate: null };
    const connection = connectionFrom(end?.port ?? 0) ?? plain;
    return peerOf(request.headers, connection, config);
  }

  const keep = requestLog({ redis, log, now: runtime.live.now });
  const app = new Elysia(ONE_ROUTER)
    .onError(async ({ code, error, path, request, set, server, route }) => {
      const problem =
        code === "NOT_FOUND"
          ? await admitted(deps, noRoute(app.routes, path, request.method), request, () =>
              findPeer(request, server),
            )
          : toProblem(error, redis, log);
      set.status = problem.status;
      keep({ request, route: code === "NOT_FOUND" ? undefined : route, problem });
      const type = explanationOf("courier", problem.code) ?? undefined;
      return problemResponse(problem, UNCOUNTED_HEADERS, type);
    })
    .use(requestIds())
    .use(requestMetrics("ingest"))
    .use(requestTarget())
    .use(
      ops(redis, {
        config,
        needs: STORE_NEEDS.ingest,
        refresh: runtime.live.refresh,
      }),
    )
    .use(eventRoutes(deps, findPeer))
    .use(tokenRoute(deps, findPeer))
    .use(
      openApiRoute(
        "/v1/openapi.json",
        (): readonly Route[] => app.routes,
        COURIER_API,
        UNCOUNTED_HEADERS,
      ),
    )
    .use(
      viewerRoutes({
        path: "/v1/calls",
        title: "Courier Event Ingestion API: calls",
        document: "/v1/openapi.json",
        links: { Reference: "/v1/docs", "Error codes": "/v1/errors" },
        headers: UNCOUNTED_HEADERS,
      }),
    )
    .use(leadTo("/v1/docs", UNCOUNTED_HEADERS))
    .use(courierErrors())
    .use(exampleRoutes("/v1/examples", "courier", UNCOUNTED_HEADERS))
    .use(referenceRoutes());
  return everyRouteDeclared(app);
}

/** A request without a route also counts against the caller's rate and returns what is left of it. */
async function admitted(
  deps: AuthenticateDeps,
  problem: Problem,
  request: Request,
  peer: FindPeer,
): Promise<Problem> {
  try {
    const bearer = await bearerOf(deps, request.headers.get("authorization"));
    const { rateHeaders } = await admit(deps, bearer, peer);
    return withHeaders(problem, rateHeaders);
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
}
