/** Where requests to a URL go, read once for many of them. */
import { isIP } from "node:net";
import { hostOf } from "#core/platform/network/vetted-address.ts";
import { limit } from "#core/platform/schema/limit.ts";

export const TARGETS_KEPT = limit(
  10_000,
  "URLs of endpoints that a process keeps parsed",
  "all are forgotten, and parsed again when they are needed",
);
const DEFAULT_PORTS: Readonly<Record<string, number>> = { "https:": 443, "http:": 80 };

export interface Target {
  readonly protocol: string;
  /** As it is resolved and judged. */
  readonly host: string;
  /** As the `Host` header names it. */
  readonly authority: string;
  readonly port: number | undefined;
  /** What the certificate is verified for; empty for an address. */
  readonly servername: string;
  readonly path: string;
}

/** @returns reads a URL @throws if the text is none */
export function rememberTargets(): (url: string) => Target {
  const known = new Map<string, Target>();
  return (url) => {
    const before = known.get(url);
    if (before) return before;
    const target = targetOf(new URL(url));
    if (known.size >= TARGETS_KEPT) known.clear();
    known.set(url, target);
    return target;
  };
}

function targetOf(url: URL): Target {
  const host = hostOf(url);
  return {
    protocol: url.protocol,
    host,
    authority: url.host,
    port: url.port === "" ? DEFAULT_PORTS[url.protocol] : Number(url.port),
    // A literal address is verified as an address; names only are sent as SNI.
    servername: isIP(host) === 0 ? host : "",
    path: `${url.pathname}${url.search}`,
  };
}
