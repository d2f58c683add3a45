/**
 * A port that answers only `/healthz`, `/readyz` and `/metrics`: for roles that serve nothing else, and for METRICS_PORT.
 */
import { Elysia } from "elysia";
import type { Config } from "#core/platform/environment/config.ts";
import { Problem, problemResponse } from "#core/platform/errors/problem.ts";
import { everyRouteDeclared } from "#core/platform/http/access.ts";
import { toProblem } from "#core/platform/http/errors.ts";
import { bindListener, type Listener, PortRefused } from "#core/platform/http/listener.ts";
import { requestIds } from "#core/platform/http/request-ids.ts";
import { ONE_ROUTER, requestTarget } from "#core/platform/http/request-target.ts";
import type { Log } from "#core/platform/process/log.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { STORE_NEEDS } from "#core/platform/redis/store-needs.ts";
import { type OpsOptions, ops } from "./ops.ts";

/** Requests to this port have no body. */
const BODY_LIMIT_BYTES = 1_024;
export const METRICS_VARIABLE = "METRICS_PORT";

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

/**
 * @param port its number, or the port that has been bound already
 * @throws {PortRefused}
 */
export function openOpsPort(
  { redis, log, config }: Deps,
  name: string,
  port: number | Listener,
  options: Partial<Omit<OpsOptions, "config">> = {},
): OpsPort {
  const listener =
    typeof port === "number" ? bindOpsListener(config, METRICS_VARIABLE, port) : port;
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
    .use(ops(redis, { config, needs: STORE_NEEDS.metrics, ...options }));
  listener.open(everyRouteDeclared(app));
  log.info({ url: listener.url }, `${name} answers health and metrics`);
  return {
    name,
    url: listener.url,
    stop: listener.stop,
  };
}

/** @throws {PortRefused} */
export function bindOpsListener(
  { host }: Pick<Config, "host">,
  variable: string,
  port: number,
): Listener {
  const terms = { variable, host, port, maxRequestBodySize: BODY_LIMIT_BYTES };
  return bindListener({ ...terms, refuse: problemResponse });
}

export interface RolePort {
  readonly variable: "PROCESSORS_PORT" | "ANALYTICS_PORT";
  /** Null if the environment names none. */
  readonly configured: number | null;
  /** Default port when the role runs alone; if it is taken, a free one is used; null = no port. */
  readonly usual: number | null;
}

/**
 * The port of a role that serves no requests.
 * @throws {PortRefused} for the port that the environment names
 */
export function bindRoleListener(
  config: Pick<Config, "host">,
  { variable, configured, usual }: RolePort,
  log: Log,
): Listener | null {
  if (configured !== null) return bindOpsListener(config, variable, configured);
  if (usual === null) return null;
  try {
    return bindOpsListener(config, variable, usual);
  } catch (error) {
    if (!(error instanceof PortRefused) || error.code !== "EADDRINUSE") throw error;
    log.warn({ variable, port: usual }, "the role's usual port is in use; taking a free one");
    return bindOpsListener(config, variable, 0);
  }
}
