/** The ingest role: courier events in, over plain HTTP or with TLS of its own. */
import type { Config } from "#core/platform/environment/config.ts";
import { urlOf } from "#core/platform/environment/url-of.ts";
import { problemResponse } from "#core/platform/errors/problem.ts";
import { bindListener, type Listener } from "#core/platform/http/listener.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { type Role, type Running, type Runtime, runRoles } from "#core/runtime/runtime.ts";
import { createIngestApp } from "#ingest/app.ts";
import { startTlsFront, type TlsFront } from "#ingest/tls-front.ts";

/** None of the server's own, so that every body too large is answered by our problem document. */
const SERVER_BODY_LIMIT_BYTES = Number.MAX_SAFE_INTEGER;
/** Above the time limit of a small body, and the server may be some seconds early. */
const INGEST_IDLE_SECONDS = limit(20, "time without a byte on a connection to ingest", "closed");
const LOOPBACK = "127.0.0.1";
const VARIABLE = "INGEST_PORT";

/** @throws {PortRefused} {ConfigFaults} for a certificate or key that cannot be used */
async function bindIngest({ host, ports, ingestTls }: Config): Promise<IngestListener> {
  const common = { variable: VARIABLE, maxRequestBodySize: SERVER_BODY_LIMIT_BYTES };
  const terms = { ...common, idleTimeout: INGEST_IDLE_SECONDS, refuse: problemResponse };
  if (ingestTls === null) {
    return { ...bindListener({ ...terms, host, port: ports.ingest }), front: null };
  }
  const inner = bindListener({ ...terms, host: LOOPBACK, port: 0 });
  try {
    const listen = { variable: VARIABLE, host, port: ports.ingest };
    const front = await startTlsFront(ingestTls, listen, inner.port);
    const close = () => {
      front.close();
      inner.close();
    };
    return { ...inner, front, url: urlOf(host, front.port, "https"), port: front.port, close };
  } catch (error) {
    inner.close();
    throw error;
  }
}

interface IngestListener extends Listener {
  /** Null where the port is plain HTTP. */
  readonly front: TlsFront | null;
}

export async function startIngest(runtime: Runtime): Promise<Running> {
  const listener = runtime.listeners.get("ingest") ?? (await bindIngest(runtime.config));
  const { front, url } = listener as IngestListener;
  const app = createIngestApp(runtime, front?.connectionFrom);
  listener.open(app);
  runtime.log.info({ url }, "ingest listens");
  return {
    name: "ingest",
    url,
    isServing: true,
    async stop() {
      front?.close();
      await listener.stop();
      front?.end();
    },
  };
}

export const INGEST: Role = { name: "ingest", bind: bindIngest, start: startIngest };

if (import.meta.main) await runRoles(process.env, [INGEST]);
