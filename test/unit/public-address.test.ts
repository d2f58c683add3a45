import { describe, expect, test } from "bun:test";
import { parseCidr } from "#core/cidr.ts";
import { isReachable } from "#core/public-address.ts";

describe("document 3: the host must resolve only to public addresses", () => {
  test.each(["8.8.8.8", "93.184.216.34", "2606:4700::1111", "2a00:1450:4002::1"])(
    "%s is public",
    (address) => expect(isReachable(address, [])).toBe(true),
  );

  test.each(["64:ff9b::808:808", "::ffff:8.8.8.8", "2002:808:808::1"])(
    "%s carries a public IPv4 address",
    (address) => expect(isReachable(address, [])).toBe(true),
  );

  test.each([
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
  ])("%s is refused: %s", (_, address) => expect(isReachable(address, [])).toBe(false));

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
