/** Why a port could not be bound, in a sentence that names the variable, the port and, where Waybill answers there, Waybill. */

import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { urlOf } from "#core/platform/environment/url-of.ts";
import { ALIVE, type PortRefused } from "./listener.ts";

/** What answers on the port may be slow, or no HTTP server at all. */
const ASK_LIMIT_MS = 2_000;

export async function explainPort({ terms, code, message }: PortRefused): Promise<string> {
  const { variable, host, port } = terms;
  if (isIP(host) === 0 && (await lookup(host).catch(() => null)) === null) {
    return `HOST: ${host} cannot be resolved.`;
  }
  if (code === "EADDRNOTAVAIL") return `HOST: ${host} is no address of this machine.`;
  if (code === "EACCES" || code === "EPERM") {
    return `${variable}: this user may not listen on port ${port} of ${host}.`;
  }
  if (code !== "EADDRINUSE") return `${variable}: port ${port} of ${host}: ${message}.`;
  const who = (await isWaybill(host, port))
    ? "Waybill is running there already: use it, stop it,"
    : "another program listens there: stop it";
  return `${variable}: port ${port} of ${host} is in use, and ${who} or set ${variable} to another port.`;
}

async function isWaybill(host: string, port: number): Promise<boolean> {
  for (const scheme of ["http", "https"] as const) {
    const answer: { service?: unknown } | null = await fetch(
      `${urlOf(host, port, scheme)}/healthz`,
      {
        signal: AbortSignal.timeout(ASK_LIMIT_MS),
        tls: { rejectUnauthorized: false },
      },
    )
      .then((response) => response.json() as Promise<{ service?: unknown }>)
      .catch(() => null);
    if (answer?.service === ALIVE.service) return true;
  }
  return false;
}
