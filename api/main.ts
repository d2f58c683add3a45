/** The api role: the merchant API. */
import { openBenchmarks } from "#analytics/benchmarks.ts";
import { createApiApp } from "#api/app.ts";
import { BODY_LIMIT_BYTES } from "#api/read-json.ts";
import { type Running, type Runtime, runRoles } from "#core/runtime.ts";

/** Above our own limit, so that a body too large is answered by our error body and not by the server's. */
const SERVER_BODY_LIMIT_BYTES = 4 * BODY_LIMIT_BYTES;
const IDLE_SECONDS = 30;

export async function startApi(runtime: Runtime): Promise<Running> {
  const { config, log } = runtime;
  const benchmarks = await openBenchmarks(config);
  const app = createApiApp({ ...runtime, benchmarks }).listen({
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

if (import.meta.main) await runRoles(process.env, [startApi]);
