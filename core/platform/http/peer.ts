/**
 * The peer of a connection: source address and client certificate. Headers are trusted only from a configured proxy
 * (`TRUSTED_PROXIES`), and for the certificate only the family that this proxy writes (`CLIENT_CERT_HEADERS`): any other
 * header may be the caller's own, forwarded by a proxy that does not know it.
 */
import { X509Certificate } from "node:crypto";
import ipaddr from "ipaddr.js";
import type { Config } from "#core/platform/environment/config.ts";
import type { ClientCertHeaders } from "#core/platform/environment/variables.ts";
import type { Cidr } from "#core/platform/network/cidr.ts";
import {
  type ClientCertificate,
  canonicalSubject,
  plainFingerprint,
} from "#core/platform/network/client-certificate.ts";

export interface Peer {
  /** Empty if unknown. */
  readonly address: string;
  /** Null if none was presented, or none signed by a configured root. */
  readonly certificate: ClientCertificate | null;
}

export type PeerConfig = Pick<Config, "trustedProxies" | "clientCertHeaders">;

/** The peer of a request, given the remote address and certificate of its connection. */
export function peerOf(headers: Headers, connection: Peer, config: PeerConfig): Peer {
  const { trustedProxies, clientCertHeaders } = config;
  if (!isWithin(connection.address, trustedProxies)) return connection;
  const forwardedFor = headers.get("x-forwarded-for");
  return {
    address: sourceAddress(connection.address, forwardedFor, trustedProxies),
    // Read only for couriers that are bound to a certificate.
    get certificate() {
      return CERTIFICATE_READERS[clientCertHeaders](headers) ?? connection.certificate;
    },
  };
}

/** The peer of a request over plain HTTP. */
export function peerOfConnection(
  request: Request,
  server: Bun.Server<unknown> | null,
  config: PeerConfig,
): Peer {
  const address = server?.requestIP(request)?.address ?? "";
  return peerOf(request.headers, { address, certificate: null }, config);
}

/** The address that a caller has asked: behind a trusted proxy that ends TLS it begins with https. */
export function originOf(
  request: Request,
  server: Bun.Server<unknown> | null,
  { trustedProxies }: Pick<Config, "trustedProxies">,
): string {
  const { protocol, host } = new URL(request.url);
  const address = server?.requestIP(request)?.address ?? "";
  const last = request.headers.get("x-forwarded-proto")?.split(",").at(-1)?.trim().toLowerCase();
  const isForwarded = isWithin(address, trustedProxies) && (last === "https" || last === "http");
  return `${isForwarded ? `${last}:` : protocol}//${host}`;
}

/**
 * Each proxy appends the address it saw, so the caller is the rightmost address that is not a trusted proxy: anything to
 * its left is only the caller's claim.
 */
function sourceAddress(nearest: string, forwardedFor: string | null, trusted: readonly Cidr[]) {
  const hops = forwardedFor?.split(",") ?? [];
  let address = nearest;
  while (hops.length > 0 && isWithin(address, trusted)) address = addressOf(hops.pop() ?? "");
  return address;
}

/** Proxies may add a port: `10.0.0.1:5555`, `[2001:db8::1]:5555`. Empty if the text is not an address. */
function addressOf(hop: string): string {
  const text = hop.trim();
  const host = /^\[(.*)\](:\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
  return ipaddr.isValid(host) ? ipaddr.process(host).toString() : "";
}

/** The subject of a limit per address: for IPv6 the /64 network, since one caller has all the addresses in it. */
export function subscriberOf(address: string): string {
  if (!ipaddr.IPv6.isValid(address)) return address;
  const peer = ipaddr.process(address);
  if (peer.kind() === "ipv4") return peer.toString();
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${peer.toNormalizedString()}/64`)}/64`;
}

/** IPv4 addresses in IPv6 form count as IPv4. */
export function isWithin(address: string, networks: readonly Cidr[]): boolean {
  if (networks.length === 0 || !ipaddr.isValid(address)) return false;
  const peer = ipaddr.process(address);
  return networks.some(
    ([network, bits]) => network.kind() === peer.kind() && peer.match(network, bits),
  );
}

type CertificateReader = (headers: Headers) => ClientCertificate | null;

/** By header family. */
const CERTIFICATE_READERS: Readonly<Record<ClientCertHeaders, CertificateReader>> = {
  none: () => null,
  "x-client-cert": (headers) =>
    certificateOf(headers.get("x-client-cert-fingerprint"), headers.get("x-client-cert-subject")),
  envoy: (headers) => {
    const element = lastElement(headers.get("x-forwarded-client-cert") ?? "");
    return certificateOf(element.get("hash"), element.get("subject"));
  },
  rfc9440: (headers) => decodedCertificate(headers.get("client-cert") ?? ""),
};

function certificateOf(
  fingerprint: string | null | undefined,
  subject: string | null | undefined,
): ClientCertificate | null {
  if (!fingerprint && !subject) return null;
  return {
    fingerprint: fingerprint ? plainFingerprint(fingerprint) : null,
    subject: subject ? canonicalSubject(subject) : null,
  };
}

/** `Client-Cert: :MIIB…:`, the certificate in DER (RFC 9440, 2.1). More than one certificate counts as none. */
function decodedCertificate(header: string): ClientCertificate | null {
  const text = /^:([A-Za-z0-9+/]+=*):$/.exec(header.trim())?.[1];
  if (text === undefined) return null;
  try {
    const { fingerprint256, subject } = new X509Certificate(Buffer.from(text, "base64"));
    return certificateOf(fingerprint256, subject);
  } catch {
    return null;
  }
}

/**
 * The nearest proxy's element of `Hash=…;Subject="CN=a,O=b",Hash=…`, by lowercase key. It is split off from the end: the
 * part to its left may be the caller's own, with an unclosed quotation mark.
 */
function lastElement(header: string): ReadonlyMap<string, string> {
  const pairs: string[] = [];
  let end = header.length;
  let quoted = false;
  let at = header.length - 1;
  for (; at >= 0; at -= 1) {
    const mark = header[at];
    if (mark === '"' && !isEscaped(header, at)) quoted = !quoted;
    if (quoted || (mark !== ";" && mark !== ",")) continue;
    pairs.push(header.slice(at + 1, end));
    end = at;
    if (mark === ",") break;
  }
  if (at < 0) pairs.push(header.slice(0, end));
  return new Map(pairs.map(readPair));
}

/** Whether it is preceded by an odd number of backslashes. */
function isEscaped(text: string, at: number): boolean {
  let first = at;
  while (text[first - 1] === "\\") first -= 1;
  return (at - first) % 2 === 1;
}

function readPair(pair: string): [string, string] {
  const [key = "", ...rest] = pair.trim().split("=");
  const value = rest.join("=").replace(/^"(.*)"$/s, "$1");
  return [key.toLowerCase(), value.replaceAll('\\"', '"')];
}
