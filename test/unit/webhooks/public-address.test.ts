import { describe, expect, test } from "bun:test";
import { parseCidr } from "#core/platform/network/cidr.ts";
import { isReachable } from "#core/platform/network/public-address.ts";
import { startMeasuring } from "#test/support/measured.ts";

const PUBLIC = ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "2a00:1450:4002::1"];
const CARRIERS = ["64:ff9b::808:808", "::ffff:8.8.8.8", "2002:808:808::1"];
const REFUSED: ReadonlyArray<readonly [kind: string, address: string]> = [
  ["loopback", "127.0.0.1"],
  ["loopback", "127.255.255.254"],
  ["loopback", "::1"],
  ["private", "10.0.0.1"],
  ["private", "172.16.0.1"],
  ["private", "192.168.1.1"],
  ["unique local", "fd00::1"],
  ["unique local", "fc00::1"],
  ["link-local", "169.254.0.1"],
  ["link-local", "fe80::1"],
  ["site-local", "fec0::1"],
  ["metadata", "169.254.169.254"],
  ["metadata", "fd00:ec2::254"],
  ["carrier-grade NAT", "100.64.0.1"],
  ["multicast", "224.0.0.1"],
  ["multicast", "ff02::1"],
  ["broadcast", "255.255.255.255"],
  ["unspecified", "0.0.0.0"],
  ["unspecified", "::"],
  ["this network", "0.1.2.3"],
  ["reserved", "240.0.0.1"],
  ["IETF assignments", "192.0.0.8"],
  ["documentation", "192.0.2.1"],
  ["documentation", "198.51.100.1"],
  ["documentation", "203.0.113.1"],
  ["documentation", "2001:db8::1"],
  ["documentation", "3fff::1"],
  ["benchmarking", "198.18.0.1"],
  ["discard", "100::1"],
  ["Teredo", "2001::1"],
  ["segment routing", "5f00::1"],
  ["local NAT64", "64:ff9b:1::808:808"],
  ["IPv4-mapped loopback", "::ffff:127.0.0.1"],
  ["IPv4-mapped private", "::ffff:a00:1"],
  ["IPv4-compatible loopback", "::7f00:1"],
  ["NAT64 of a private address", "64:ff9b::a00:1"],
  ["NAT64 of metadata", "64:ff9b::a9fe:a9fe"],
  ["6to4 of a private address", "2002:a00:1::1"],
  ["6to4 of loopback", "2002:7f00:1::1"],
];
/** Ways of writing an address in a URL by which checks of its text have been got round. */
const SPELLINGS = [
  ...["127.1", "127.0.1", "0", "0x7f.1", "0x7f000001", "2130706433", "017700000001", "0177.0.0.1"],
  ...["%31%32%37.0.0.1", "\u2460\u2461\u2466.0.0.1", "127\u30020\u30020.1", "127.0.0.1."],
  ...["169.254.43518", "0xa9fea9fe", "2852039166", "0251.0376.0251.0376", "3232235777", "10.1"],
  ...["[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]"],
  ...["[64:ff9b::169.254.169.254]", "[2002:7f00:1::]", "[fe80::1]", "[::ffff:0:7f00:1]"],
];

/** As the transport takes it out of the URL. */
function addressIn(spelling: string): string {
  return new URL(`https://${spelling}/`).hostname.replace(/^\[|\]$/g, "");
}

describe("document 3: the host must resolve only to public addresses", () => {
  test.each(PUBLIC)("%s is public", (address) => expect(isReachable(address, [])).toBe(true));

  test.each(CARRIERS)("%s carries a public IPv4 address", (address) =>
    expect(isReachable(address, [])).toBe(true),
  );

  test.each(REFUSED)("%s is refused: %s", (_, address) =>
    expect(isReachable(address, [])).toBe(false),
  );

  test.each(SPELLINGS)("https://%s is refused, which leads to one of them", (spelling) => {
    expect(isReachable(addressIn(spelling), [])).toBe(false);
  });

  test("none of the corpus is reached, in one more walk that is counted", async () => {
    const measuring = startMeasuring("Bad input", "addresses that webhooks must not be sent to");
    const addresses = [...REFUSED.map(([, address]) => address), ...SPELLINGS.map(addressIn)];
    const reached = addresses.filter((address) => isReachable(address, []));
    expect(reached).toEqual([]);
    await measuring.done({
      inputs: addresses.length,
      further: { "let through": reached.length },
    });
  });

  test.each(["", "localhost", "example.com", "1.2.3.4.5"])("%p is no address", (text) =>
    expect(isReachable(text, [])).toBe(false),
  );

  test("an allowed network opens what lies inside it, and nothing else", () => {
    const networks = ["127.0.0.0/8", "fd00::/8"].map(parseCidr).filter((cidr) => cidr !== null);
    expect(isReachable("127.0.0.1", networks)).toBe(true);
    expect(isReachable("::ffff:127.0.0.1", networks)).toBe(true);
    expect(isReachable("fd00::7", networks)).toBe(true);
    expect(isReachable("10.0.0.1", networks)).toBe(false);
    expect(isReachable("::1", networks)).toBe(false);
  });
});
