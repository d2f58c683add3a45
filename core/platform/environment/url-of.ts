/** Where a port of this machine is reached. Every URL that is made of HOST comes from here. */
import ipaddr from "ipaddr.js";

const LOOPBACK = { ipv4: "127.0.0.1", ipv6: "::1" } as const;

/**
 * @param host an address or a name; one that stands for every address of the machine is reached at its loopback address
 * @returns without a slash at the end
 */
export function urlOf(host: string, port: number, scheme: "http" | "https" = "http"): string {
  const address = ipaddr.isValid(host) ? ipaddr.parse(host) : null;
  const reached = address?.range() === "unspecified" ? LOOPBACK[address.kind()] : host;
  return `${scheme}://${address?.kind() === "ipv6" ? `[${reached}]` : reached}:${port}`;
}
