/** The whole ingest API on one page: document 2 and the operator's probes. CORS stays off. */
import { Elysia } from "elysia";
import { toProblem } from "#core/http/errors.ts";
import { ops } from "#core/http/ops.ts";
import { type Peer, peerOf } from "#core/http/peer.ts";
import { requestMetrics } from "#core/http/request-metrics.ts";
import { Problem, problemResponse } from "#core/problem.ts";
import type { Runtime } from "#core/runtime.ts";
import {
  type AuthenticateDeps,
  admit,
  bearerOf,
  type FindPeer,
  withHeaders,
} from "#ingest/authenticate.ts";
import { openIntake } from "#ingest/intake.ts";
import { accessTokens } from "#ingest/oauth/access-token.ts";
import { eventRoutes } from "#ingest/routes/events.ts";
import { referenceRoutes } from "#ingest/routes/reference.ts";
import { tokenRoute } from "#ingest/routes/token.ts";

/** Methods of the paths that exist; another method on them is 405, any other path 404. */
const METHODS: Readonly<Record<string, string>> = {
  "/v1/events": "POST",
  "/v1/events/validate": "POST",
  "/v1/ping": "GET",
  "/v1/oauth/token": "POST",
  "/v1/openapi.json": "GET",
  "/v1/docs": "GET",
  "/healthz": "GET",
  "/readyz": "GET",
  "/metrics": "GET",
};

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
    return peerOf(request.headers, connection, config.trustedProxies);
  }

  return new Elysia()
    .onError(async ({ code, error, request, set, server }) => {
      const problem =
        code === "NOT_FOUND"
          ? await noRoute(deps, request, () => findPeer(request, server))
          : toProblem(error, redis, log);
      set.status = problem.status;
      return problemResponse(problem);
    })
    .use(requestMetrics("ingest"))
    .use(ops(redis, { config }))
    .use(eventRoutes(deps, findPeer))
    .use(tokenRoute(deps, findPeer))
    .use(referenceRoutes());
}

/** Also a wrong path of the API takes from the caller's rate and tells what is left of it. */
async function noRoute(deps: AuthenticateDeps, request: Request, peer: FindPeer): Promise<Problem> {
  const { pathname } = new URL(request.url);
  const allow = METHODS[pathname];
  const problem =
    allow === undefined
      ? new Problem(404, "NOT_FOUND", "There is no such path.")
      : new Problem(405, "METHOD_NOT_ALLOWED", `Only ${allow} is allowed here.`, {
          headers: { allow },
        });
  if (!pathname.startsWith("/v1/")) return problem;
  try {
    const bearer = bearerOf(deps, request.headers.get("authorization"));
    const { rateHeaders } = await admit(deps, bearer, peer);
    return withHeaders(problem, rateHeaders);
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
}
