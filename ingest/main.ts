/** The ingest role: courier events in, over plain HTTP or with TLS of its own. */
import { type Running, type Runtime, runRoles } from "#core/runtime.ts";
import { createIngestApp } from "#ingest/app.ts";
import { startTlsFront, type TlsFront } from "#ingest/tls-front.ts";

/** None of the server's own, so that every body too large is answered by our problem document. */
const SERVER_BODY_LIMIT_BYTES = Number.MAX_SAFE_INTEGER;
/** Above the time limit of a small body, and the server may be some seconds early. */
const INGEST_IDLE_SECONDS = 20;
const LOOPBACK = "127.0.0.1";

export async function startIngest(runtime: Runtime): Promise<Running> {
  const { config, log } = runtime;
  const tls = config.ingestTls;
  let front: TlsFront | null = null;
  const app = createIngestApp(runtime, (port) => front?.connectionFrom(port) ?? null).listen({
    // Two processes on one port would share it silently.
    reusePort: false,
    port: tls ? 0 : config.ports.ingest,
    hostname: tls ? LOOPBACK : config.host,
    maxRequestBodySize: SERVER_BODY_LIMIT_BYTES,
    idleTimeout: INGEST_IDLE_SECONDS,
  });
  const httpPort = app.server?.port ?? 0;
  if (tls)
    front = await startTlsFront(tls, { host: config.host, port: config.ports.ingest }, httpPort);
  const url = front ? `https://${config.host}:${front.port}` : `http://${config.host}:${httpPort}`;
  log.info({ url }, "ingest listens");
  return {
    name: "ingest",
    url,
    async stop() {
      front?.close();
      await app.stop();
      front?.end();
    },
  };
}

if (import.meta.main) await runRoles(process.env, [startIngest]);
