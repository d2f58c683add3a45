/** Whom a limit per address counts together. */
import ipaddr from "ipaddr.js";

/** An IPv6 customer has a network of 2^64 addresses and may use each of them once. */
const IPV6_BITS = 64;

/** The address itself, or the /64 network of an IPv6 address; IPv4 addresses in IPv6 form count as IPv4. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const peer = ipaddr.process(address);
  if (peer.kind() === "ipv4") return peer.toString();
  const network = ipaddr.IPv6.networkAddressFromCIDR(`${peer.toString()}/${IPV6_BITS}`);
  return `${network.toString()}/${IPV6_BITS}`;
}
