/**
 * Resolves a host name for every send, directly from the name servers (document 3, "Transport rules"). Neither the
 * runtime's cache nor the TTL of the records is used: an answer is cached for a second at most.
 */
import { Resolver } from "node:dns/promises";

/**
 * All A and AAAA addresses of a name.
 * @throws if the name cannot be resolved
 */
export type Resolve = (host: string) => Promise<readonly string[]>;

export interface NameResolverOptions {
  /** A query to a name server, one record type at a time. */
  readonly ask?: { readonly v4: Resolve; readonly v6: Resolve };
}

/** Sends of one burst share an answer. */
const KEPT_MS = 1_000;
/** Names cached at once; the cache is cleared when it is full. */
const NAMES_KEPT = 10_000;
/** Timeout of one query to one name server, and number of retries. */
const QUESTION = { timeout: 2_000, tries: 2 };
const LOOPBACK = ["127.0.0.1"];

/** A new resolver has no cached answers. c-ares blocks no thread while a name server hangs. */
const asked = {
  v4: (host: string) => new Resolver(QUESTION).resolve4(host),
  v6: (host: string) => new Resolver(QUESTION).resolve6(host),
};

interface Kept {
  readonly addresses: Promise<readonly string[]>;
  readonly untilMs: number;
}

/** IPv4 addresses come before IPv6 addresses. */
export function createNameResolver({ ask = asked }: NameResolverOptions = {}): Resolve {
  const names = new Map<string, Kept>();
  return (host) => {
    const nowMs = performance.now();
    const known = names.get(host);
    if (known && known.untilMs > nowMs) return known.addresses;
    if (names.size >= NAMES_KEPT) names.clear();
    const addresses = lookUp(host, ask);
    names.set(host, { addresses, untilMs: nowMs + KEPT_MS });
    return addresses;
  };
}

export const resolveName = createNameResolver();

async function lookUp(
  host: string,
  ask: NonNullable<NameResolverOptions["ask"]>,
): Promise<readonly string[]> {
  // RFC 6761, 6.3: these names are always the local machine, whatever a name server says.
  if (/(^|\.)localhost$/i.test(host)) return LOOPBACK;
  const answers = await Promise.allSettled([ask.v4(host), ask.v6(host)]);
  const addresses = answers.flatMap((answer) =>
    answer.status === "fulfilled" ? [...answer.value] : [],
  );
  if (addresses.length > 0) return addresses;
  const known = await hostsEntry(host);
  if (known.length > 0) return known;
  const [failure] = answers.filter((answer) => answer.status === "rejected");
  if (failure) throw failure.reason;
  return addresses;
}

/** Names from the hosts file, which name servers do not know. */
async function hostsEntry(host: string): Promise<readonly string[]> {
  const found = await Bun.dns.lookup(host, { backend: "c-ares" }).catch(() => []);
  return found.map(({ address }) => address);
}
