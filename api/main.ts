/** The api role: the merchant API. */
import { openArchive } from "#analytics/archive.ts";
import { openBenchmarks } from "#analytics/benchmarks.ts";
import { createApiApp } from "#api/app.ts";
import type { Config } from "#core/config.ts";
import { type Running, type Runtime, runRoles } from "#core/runtime.ts";

/**
 * Every call has a limit of its own (`body-limits.ts`), and what exceeds it gets our error body and not the server's empty
 * one. The server passes on what arrives and buffers none of it.
 */
const SERVER_BODY_LIMIT_BYTES = Number.MAX_SAFE_INTEGER;
const IDLE_SECONDS = 30;

/** @param started tells the panel's address where its port is one that was free */
export async function startApi(
  runtime: Runtime,
  started: readonly Running[] = [],
): Promise<Running> {
  const { log } = runtime;
  const config = withPanel(runtime.config, started);
  const benchmarks = await openBenchmarks(config);
  const archive = openArchive(config, runtime.secrets.vault, runtime.log);
  const app = createApiApp({ ...runtime, config, benchmarks, archive }).listen({
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
      await Promise.all([benchmarks.close(), archive.close()]);
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
