/** From the host of a URL to an address that may be connected to (document 3: checked on save and on every send). */
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import type { Cidr } from "./config.ts";
import { isReachable } from "./public-address.ts";

/** All A and AAAA addresses of a name. @throws when the name cannot be resolved. */
export type Resolve = (host: string) => Promise<readonly string[]>;

export type Vetted =
  | { readonly kind: "reachable"; readonly address: string }
  /** At least one of the answers is not public. */
  | { readonly kind: "refused" }
  | { readonly kind: "unresolved"; readonly error: string };

/** Every answer must be public, or inside an allowed network. The first one is the one to connect to. */
export async function vetHost(
  host: string,
  allowed: readonly Cidr[],
  resolve: Resolve = resolveName,
): Promise<Vetted> {
  let addresses: readonly string[];
  try {
    addresses = isIP(host) === 0 ? await resolve(host) : [host];
  } catch (error) {
    return { kind: "unresolved", error: `dns: ${codeOf(error)}` };
  }
  const [first] = addresses;
  if (first === undefined) return { kind: "unresolved", error: "dns: no address" };
  return addresses.every((address) => isReachable(address, allowed))
    ? { kind: "reachable", address: first }
    : { kind: "refused" };
}

/** True for a URL whose host needs no name server to be told from a public one: an address, or this machine's name. */
export function isPrivateByItself(url: string, allowed: readonly Cidr[]): boolean {
  if (!URL.canParse(url)) return false;
  const host = hostOf(new URL(url));
  const literal = /(^|\.)localhost$/i.test(host) ? "127.0.0.1" : host;
  return ipaddr.isValid(literal) && !isReachable(literal, allowed);
}

/** The name or literal address without the brackets of IPv6 and the dot of a fully qualified name. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
}

/** c-ares: a name server that hangs holds no thread, as the system's resolver would. It knows the hosts file too. */
async function resolveName(host: string): Promise<string[]> {
  const answers = await Bun.dns.lookup(host, { backend: "c-ares" });
  return answers.map(({ address }) => address);
}

function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code.replace(/^DNS_/, "") : "failed";
}
