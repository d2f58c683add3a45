/** The demo merchants' receiver: HTTPS, verifies every signature as document 3 tells receivers to, and counts. */
import { verifySignature } from "#core/webhooks/rules/signature.ts";
import { issueDemoCertificate } from "./certificate.ts";
import { DEMO_CHANNELS } from "./demo-setup.ts";

/** This merchant's receiver is down for one minute in nine: its endpoint shows failures, retries and alerts. */
export const UNSTEADY_PATH = "/hooks/aurora-market";
const MINUTE_MS = 60_000;
const DOWN_EVERY_MINUTES = 9;

/** A delivery is a shipment summary; what is larger is not ours. */
const BODY_LIMIT_BYTES = 1024 * 1024;

export interface Receiver {
  /** `https://localhost:port` */
  readonly url: string;
  /** PEM of the root that signed its certificate. */
  readonly ca: string;
  readonly received: Readonly<Received>;
  readonly stop: () => Promise<void>;
}

interface Received {
  verified: number;
  /** Answered 401. */
  unverified: number;
}

/** @param now the service clock, which the signatures' time is taken from */
export async function startReceiver(now: () => number): Promise<Receiver> {
  const { key, cert, ca } = await issueDemoCertificate();
  const received: Received = { verified: 0, unverified: 0 };
  const secrets = new Map<string, string>(
    DEMO_CHANNELS.map(({ code, webhookSecret }) => [`/hooks/${code}`, webhookSecret]),
  );
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    tls: { key, cert },
    maxRequestBodySize: BODY_LIMIT_BYTES,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const secret = secrets.get(pathname);
      if (request.method !== "POST" || secret === undefined) {
        return new Response(null, { status: 404 });
      }
      if (pathname === UNSTEADY_PATH && isDown(now())) {
        return new Response("Maintenance, back in a minute.", { status: 503 });
      }
      const body = new Uint8Array(await request.arrayBuffer());
      const header = request.headers.get("x-service-signature") ?? "";
      const isValid = verifySignature(header, [secret], body, now()) === "valid";
      received[isValid ? "verified" : "unverified"] += 1;
      return new Response(null, { status: isValid ? 204 : 401 });
    },
  });
  return {
    url: `https://localhost:${server.port}`,
    ca,
    received,
    stop: () => server.stop(true),
  };
}

function isDown(nowMs: number): boolean {
  return Math.floor(nowMs / MINUTE_MS) % DOWN_EVERY_MINUTES === 0;
}
