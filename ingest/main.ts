/** The ingest role: courier events in. */
import { BODY_LIMIT_BYTES } from "#core/domain/event.ts";
import { type Running, type Runtime, runRoles } from "#core/runtime.ts";
import { createIngestApp } from "#ingest/app.ts";

/** Above our own limit, so that a body too large is answered by our problem document and not by the server's. */
const SERVER_BODY_LIMIT_BYTES = 16 * BODY_LIMIT_BYTES;
/** Document 2, "Limits": read timeout. */
const READ_TIMEOUT_SECONDS = 10;

export async function startIngest(runtime: Runtime): Promise<Running> {
  const { config, log } = runtime;
  const app = createIngestApp(runtime).listen({
    port: config.ports.ingest,
    hostname: config.host,
    maxRequestBodySize: SERVER_BODY_LIMIT_BYTES,
    idleTimeout: READ_TIMEOUT_SECONDS,
  });
  const url = `http://${config.host}:${app.server?.port}`;
  log.info({ url }, "ingest listens");
  return { name: "ingest", url, stop: async () => void (await app.stop()) };
}

if (import.meta.main) await runRoles(process.env, [startIngest]);
