/** Networks as the environment and the configuration write them. */
import ipaddr from "ipaddr.js";

export type Cidr = [ipaddr.IPv4 | ipaddr.IPv6, number];

/** Reads `10.0.0.0/8`, `::1/128` or a single address; null when it is none. */
export function parseCidr(text: string): Cidr | null {
  try {
    if (text.includes("/")) return ipaddr.parseCIDR(text);
    const address = ipaddr.parse(text);
    return [address, address.kind() === "ipv4" ? 32 : 128];
  } catch {
    return null;
  }
}
