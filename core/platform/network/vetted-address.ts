/** From the host of a URL to an address that may be connected to (document 3: checked on save and on every send). */
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { limit } from "#core/platform/schema/limit.ts";
import type { Cidr } from "./cidr.ts";
import { isReachable } from "./public-address.ts";
import { type Resolve, resolveName } from "./resolve-name.ts";

export type Vetted =
  /** At least one. */
  | { readonly kind: "reachable"; readonly addresses: readonly string[] }
  /** At least one of the answers is not public. */
  | { readonly kind: "refused" }
  | { readonly kind: "unresolved"; readonly error: string };

/** Every address must be public or in an allowed network. Connect to them in this order. */
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
  if (addresses.length === 0) return { kind: "unresolved", error: "dns: no address" };
  return addresses.every((address) => isReachable(address, allowed))
    ? { kind: "reachable", addresses }
    : { kind: "refused" };
}

/** For all hosts of one change together; what is not resolved by then is let pass, since every send resolves it again. */
export const RESOLVE_LIMIT_MS = limit(
  5_000,
  "time for resolving the hosts of new and changed webhooks",
  "accepted with a warning, and every send resolves them again",
);
export const NAMES_AT_ONCE = limit(
  50,
  "hosts of new and changed webhooks resolved at once",
  "the next",
);

/** Judges the hosts that are about to be saved, each once. */
export async function vetHosts(
  hosts: readonly string[],
  allowed: readonly Cidr[],
  resolve: Resolve = resolveName,
): Promise<{ readonly refused: ReadonlySet<string>; readonly unresolved: ReadonlySet<string> }> {
  const refused = new Set<string>();
  const unresolved = new Set(hosts);
  const queue = [...unresolved].values();
  let isOver = false;
  const work = async () => {
    for (const host of queue) {
      const { kind } = await vetHost(host, allowed, resolve);
      if (isOver) return;
      if (kind === "refused") refused.add(host);
      if (kind !== "unresolved") unresolved.delete(host);
    }
  };
  const timer = Promise.withResolvers<void>();
  const limit = setTimeout(timer.resolve, RESOLVE_LIMIT_MS);
  await Promise.race([Promise.all(Array.from({ length: NAMES_AT_ONCE }, work)), timer.promise]);
  clearTimeout(limit);
  isOver = true;
  return { refused, unresolved };
}

/** True for a URL whose host needs no name server to be distinguished from a public one: an address, or this machine's name. */
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

function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code.replace(/^DNS_/, "") : "failed";
}
