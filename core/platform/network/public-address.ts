/** Which addresses webhooks may reach (document 3: "host must resolve only to public addresses"). */
import ipaddr from "ipaddr.js";
import type { Cidr } from "./cidr.ts";

/** Prefixes of IPv6 that carry an IPv4 address: the bytes where it begins. */
const CARRIERS: ReadonlyArray<{ readonly network: Cidr; readonly at: number }> = [
  { network: ipaddr.parseCIDR("64:ff9b::/96"), at: 12 },
  { network: ipaddr.parseCIDR("2002::/16"), at: 2 },
  { network: ipaddr.parseCIDR("::/96"), at: 12 },
];

/** Not in the public part by IANA's registries, whatever the list says. */
const ALWAYS_REFUSED: readonly Cidr[] = ["3fff::/20", "5f00::/16", "64:ff9b:1::/48"].map((text) =>
  ipaddr.parseCIDR(text),
);

/** Verdicts kept for one list of networks: receivers are the same again and again. */
const VERDICTS_KEPT = 10_000;
const verdicts = new WeakMap<readonly Cidr[], Map<string, boolean>>();

/** True when an address as text is public, or inside one of the allowed networks. Text that is none is not. */
export function isReachable(text: string, allowed: readonly Cidr[]): boolean {
  const kept = verdicts.get(allowed) ?? new Map<string, boolean>();
  verdicts.set(allowed, kept);
  const known = kept.get(text);
  if (known !== undefined) return known;
  const verdict = isPublicOrAllowed(text, allowed);
  if (kept.size >= VERDICTS_KEPT) kept.clear();
  kept.set(text, verdict);
  return verdict;
}

function isPublicOrAllowed(text: string, allowed: readonly Cidr[]): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = unwrap(ipaddr.parse(text));
  if (allowed.some((network) => within(address, network))) return true;
  if (ALWAYS_REFUSED.some((network) => within(address, network))) return false;
  return address.range() === "unicast";
}

/** The IPv4 address inside an IPv4-mapped, NAT64, 6to4 or IPv4-compatible one; any other address as it is. */
function unwrap(address: ipaddr.IPv4 | ipaddr.IPv6): ipaddr.IPv4 | ipaddr.IPv6 {
  if (!(address instanceof ipaddr.IPv6)) return address;
  if (address.isIPv4MappedAddress()) return address.toIPv4Address();
  const carrier = CARRIERS.find(({ network }) => within(address, network));
  // The unspecified and the loopback address stand in ::/96 and carry nothing.
  if (!carrier || ["unspecified", "loopback"].includes(address.range())) return address;
  return new ipaddr.IPv4(address.toByteArray().slice(carrier.at, carrier.at + 4));
}

function within(address: ipaddr.IPv4 | ipaddr.IPv6, [network, bits]: Cidr): boolean {
  return address.kind() === network.kind() && address.match(network, bits);
}
