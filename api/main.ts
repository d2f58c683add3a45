/** The api role: the merchant API. */
import { openArchive } from "#analytics/archive.ts";
import { openBenchmarks } from "#analytics/benchmarks.ts";
import { createApiApp } from "#api/app.ts";
import { errorResponse } from "#api/http/error-response.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { bindDoor, type Door } from "#core/platform/http/door.ts";
import { type Role, type Running, type Runtime, runRoles } from "#core/runtime/runtime.ts";

/**
 * Every call has a limit of its own (`body-limits.ts`), and what exceeds it gets our error body and not the server's empty
 * one. The server passes on what arrives and buffers none of it.
 */
const SERVER_BODY_LIMIT_BYTES = Number.MAX_SAFE_INTEGER;
const IDLE_SECONDS = 30;

/** @throws {PortRefused} */
function bindApi({ host, ports }: Config): Door {
  return bindDoor({
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
  const door = runtime.doors.get("api") ?? bindApi(config);
  const benchmarks = await openBenchmarks(config);
  const archive = openArchive(config, runtime.secrets.vault, runtime.log);
  const app = createApiApp({ ...runtime, benchmarks, archive });
  door.open(app);
  const { url } = door;
  log.info({ url }, "api listens");
  return {
    name: "api",
    url,
    isServing: true,
    async stop() {
      await door.stop();
      await Promise.all([benchmarks.close(), archive.close()]);
    },
  };
}

export const API: Role = { name: "api", bind: bindApi, start: startApi };

if (import.meta.main) await runRoles(process.env, [API]);
