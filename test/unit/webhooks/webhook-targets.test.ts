import { expect, test } from "bun:test";
import { rememberTargets, TARGETS_KEPT } from "#core/webhooks/store/transport/targets.ts";

test("a URL is read into where its requests go", () => {
  const targetOf = rememberTargets();
  expect(targetOf("https://shop.example.:8443/hook?key=1")).toEqual({
    protocol: "https:",
    host: "shop.example",
    authority: "shop.example.:8443",
    port: 8443,
    servername: "shop.example",
    path: "/hook?key=1",
  });
  expect(targetOf("https://[2001:db8::1]/")).toEqual({
    protocol: "https:",
    host: "2001:db8::1",
    authority: "[2001:db8::1]",
    port: 443,
    servername: "",
    path: "/",
  });
  expect(() => targetOf("no url")).toThrow();
});

test("as many URLs as the limit says are read once, and one more makes all be read again", () => {
  const targetOf = rememberTargets();
  const urlOf = (n: number) => `https://r${n}.example/hook`;
  const first = targetOf(urlOf(0));
  for (let n = 1; n < TARGETS_KEPT; n += 1) targetOf(urlOf(n));
  expect(targetOf(urlOf(0))).toBe(first);
  targetOf(urlOf(TARGETS_KEPT));
  expect(targetOf(urlOf(0))).not.toBe(first);
});
