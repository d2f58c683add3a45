/**
 * Who is at the other end: source address and client certificate. Headers tell them only where a configured proxy
 * (`TRUSTED_PROXIES`) has sent them; anybody else's are ignored.
 */
import ipaddr from "ipaddr.js";
import type { Cidr, Config } from "#core/config.ts";
import {
  type ClientCertificate,
  canonicalSubject,
  plainFingerprint,
} from "#core/domain/client-certificate.ts";

export interface Peer {
  /** Empty when nobody tells it. */
  readonly address: string;
  /** Null when none was shown, or none that a configured root has signed. */
  readonly certificate: ClientCertificate | null;
}

/** The peer of a request, given the end of its connection. */
export function peerOf(headers: Headers, connection: Peer, trusted: readonly Cidr[]): Peer {
  if (!isWithin(connection.address, trusted)) return connection;
  return {
    address: sourceAddress(connection.address, headers.get("x-forwarded-for"), trusted),
    certificate: toldCertificate(headers) ?? connection.certificate,
  };
}

/** The peer of a request that came in plain HTTP. */
export function peerOfConnection(
  request: Request,
  server: Bun.Server<unknown> | null,
  { trustedProxies }: Pick<Config, "trustedProxies">,
): Peer {
  const address = server?.requestIP(request)?.address ?? "";
  return peerOf(request.headers, { address, certificate: null }, trustedProxies);
}

/**
 * Each proxy appends the address it has seen, so the rightmost address that is no trusted proxy's counts: what stands
 * left of it is the caller's own claim.
 */
function sourceAddress(nearest: string, forwardedFor: string | null, trusted: readonly Cidr[]) {
  const hops = forwardedFor?.split(",") ?? [];
  let address = nearest;
  while (hops.length > 0 && isWithin(address, trusted)) address = addressOf(hops.pop() ?? "");
  return address;
}

/** Proxies may add a port: `10.0.0.1:5555`, `[2001:db8::1]:5555`. Empty when the text is no address. */
function addressOf(hop: string): string {
  const text = hop.trim();
  const host = /^\[(.*)\](:\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
  return ipaddr.isValid(host) ? ipaddr.process(host).toString() : "";
}

/** IPv4 addresses in IPv6 form count as IPv4. */
export function isWithin(address: string, networks: readonly Cidr[]): boolean {
  if (networks.length === 0 || !ipaddr.isValid(address)) return false;
  const peer = ipaddr.process(address);
  return networks.some(
    ([network, bits]) => network.kind() === peer.kind() && peer.match(network, bits),
  );
}

/** `X-Client-Cert-Fingerprint` (SHA-256) and `X-Client-Cert-Subject`, or Envoy's `X-Forwarded-Client-Cert`. */
function toldCertificate(headers: Headers): ClientCertificate | null {
  const forwarded = headers.get("x-forwarded-client-cert");
  const last = forwarded === null ? new Map<string, string>() : lastElement(forwarded);
  const fingerprint = headers.get("x-client-cert-fingerprint") ?? last.get("hash");
  const subject = headers.get("x-client-cert-subject") ?? last.get("subject");
  if (!fingerprint && !subject) return null;
  return {
    fingerprint: fingerprint ? plainFingerprint(fingerprint) : null,
    subject: subject ? canonicalSubject(subject) : null,
  };
}

/** The nearest proxy's element of `Hash=…;Subject="CN=a,O=b",Hash=…`, by lowercase key. */
function lastElement(header: string): Map<string, string> {
  const quoted = String.raw`"(?:[^"\\]|\\.)*"`;
  const elements = header.match(new RegExp(`(?:${quoted}|[^",])+`, "g")) ?? [];
  const pairs = elements.at(-1)?.match(new RegExp(`(?:${quoted}|[^";])+`, "g")) ?? [];
  return new Map(
    pairs.map((pair) => {
      const [key = "", ...rest] = pair.trim().split("=");
      const value = rest.join("=").replace(/^"(.*)"$/s, "$1");
      return [key.toLowerCase(), value.replaceAll('\\"', '"')] as const;
    }),
  );
}
