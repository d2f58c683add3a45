/** The api role: the merchant API. */
import { openBenchmarks } from "#analytics/benchmarks.ts";
import { createApiApp } from "#api/app.ts";
import { IMPORT_BODY_BYTES } from "#api/body-limits.ts";
import type { Config } from "#core/config.ts";
import { type Running, type Runtime, runRoles } from "#core/runtime.ts";

/**
 * Above our own limits, so that a body that is too large gets our error body and not the server's empty one. The server
 * passes on what arrives and buffers none of it.
 */
const SERVER_BODY_LIMIT_BYTES = 2 * IMPORT_BODY_BYTES;
const IDLE_SECONDS = 30;

/** @param started tells the panel's address where its port is one that was free */
export async function startApi(
  runtime: Runtime,
  started: readonly Running[] = [],
): Promise<Running> {
  const { log } = runtime;
  const config = withPanel(runtime.config, started);
  const benchmarks = await openBenchmarks(config);
  const app = createApiApp({ ...runtime, config, benchmarks }).listen({
    // Two processes on one port would share it silently.
    reusePort: false,
    port: config.ports.api,
    hostname: config.host,
    maxRequestBodySize: SERVER_BODY_LIMIT_BYTES,
    idleTimeout: IDLE_SECONDS,
  });
  const url = `http://${config.host}:${app.server?.port}`;
  log.info({ url }, "api listens");
  return {
    name: "api",
    url,
    async stop() {
      await app.stop();
      await benchmarks.close();
    },
  };
}

/** Slips are served by the panel; a port 0 in their address would lead nowhere. */
function withPanel(config: Config, started: readonly Running[]): Config {
  const panel = started.find(({ name }) => name === "panel")?.url;
  if (!panel || !config.publicUrl.endsWith(":0")) return config;
  return { ...config, publicUrl: panel };
}

if (import.meta.main) await runRoles(process.env, [startApi]);
