/** The api role: the merchant API. */
import { openArchive } from "#analytics/archive.ts";
import { openBenchmarks } from "#analytics/benchmarks.ts";
import { createApiApp } from "#api/app.ts";
import { errorResponse } from "#api/http/error-response.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { bindListener, type Listener } from "#core/platform/http/listener.ts";
import { type Role, type Running, type Runtime, runRoles } from "#core/runtime/runtime.ts";

/**
 * Every call has a limit of its own (`body-limits.ts`), and what exceeds it gets our error body and not the server's empty
 * one. The server passes on what arrives and buffers none of it.
 */
const SERVER_BODY_LIMIT_BYTES = Number.MAX_SAFE_INTEGER;
/** Longer than any answer takes: the server takes a connection for idle whose request has no body and waits for its answer. */
export const IDLE_SECONDS = 60;

/** @throws {PortRefused} */
function bindApi({ host, ports }: Config): Listener {
  return bindListener({
    variable: "API_PORT",
    host,
    port: ports.api,
    maxRequestBodySize: SERVER_BODY_LIMIT_BYTES,
    idleTimeout: IDLE_SECONDS,
    refuse: errorResponse,
  });
}

export async function startApi(runtime: Runtime): Promise<Running> {
  const { config, log } = runtime;
  const listener = runtime.listeners.get("api") ?? bindApi(config);
  const benchmarks = await openBenchmarks(config);
  const archive = openArchive(config, runtime.secrets.vault, runtime.log);
  const app = createApiApp({ ...runtime, benchmarks, archive });
  listener.open(app);
  const { url } = listener;
  log.info({ url }, "api listens");
  return {
    name: "api",
    url,
    isServing: true,
    async stop() {
      await listener.stop();
      await Promise.all([benchmarks.close(), archive.close()]);
    },
  };
}

export const API: Role = { name: "api", bind: bindApi, start: startApi };

if (import.meta.main) await runRoles(process.env, [API]);
