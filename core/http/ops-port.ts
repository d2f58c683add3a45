/**
 * A port that answers only `/healthz`, `/readyz` and `/metrics`: for roles that serve nothing else, and for METRICS_PORT.
 */
import { Elysia } from "elysia";
import type { Config } from "#core/config.ts";
import type { Log } from "#core/log.ts";
import { Problem, problemResponse } from "#core/problem.ts";
import type { Redis } from "#core/redis/client/client.ts";
import { everyRouteDeclared } from "./access.ts";
import { toProblem } from "./errors.ts";
import { type OpsOptions, ops } from "./ops.ts";
import { requestIds } from "./request-ids.ts";
import { ONE_ROUTER, requestTarget } from "./request-target.ts";

/** Requests to this port have no body. */
const BODY_LIMIT_BYTES = 1_024;

interface Deps {
  readonly redis: Redis;
  readonly log: Log;
  readonly config: Config;
}

export interface OpsPort {
  readonly name: string;
  readonly url: string;
  readonly stop: () => Promise<void>;
}

/** @throws when the port is in use */
export function openOpsPort(
  { redis, log, config }: Deps,
  name: string,
  port: number,
  options: Omit<OpsOptions, "config"> = {},
): OpsPort {
  const app = new Elysia(ONE_ROUTER)
    .onError(({ code, error }) =>
      problemResponse(
        code === "NOT_FOUND"
          ? new Problem(404, "NOT_FOUND", "There is no such path.")
          : toProblem(error, redis, log),
      ),
    )
    .use(requestIds())
    .use(requestTarget())
    .use(ops(redis, { config, ...options }));
  everyRouteDeclared(app).listen({
    // Otherwise two processes would silently share one port.
    reusePort: false,
    port,
    hostname: config.host,
    maxRequestBodySize: BODY_LIMIT_BYTES,
  });
  const url = `http://${config.host}:${app.server?.port}`;
  log.info({ url }, `${name} answers health and metrics`);
  return {
    name,
    url,
    async stop() {
      await app.stop();
    },
  };
}

/**
 * The port of a role that serves no requests.
 * @param configured null if the environment names none
 * @param usual default port when the role runs alone; if it is taken, a free one is used; null = no port
 */
export function openRolePort(
  deps: Deps,
  name: string,
  { configured, usual }: { readonly configured: number | null; readonly usual: number | null },
  reasonNotReady: () => Promise<string | null>,
): OpsPort | null {
  if (configured !== null) return openOpsPort(deps, name, configured, { reasonNotReady });
  if (usual === null) return null;
  try {
    return openOpsPort(deps, name, usual, { reasonNotReady });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    deps.log.warn(
      { role: name, port: usual },
      "the role's usual port is in use; taking a free one",
    );
    return openOpsPort(deps, name, 0, { reasonNotReady });
  }
}
