/** The public address of a tracking page: only who was given it can open the page. */
import { expect, test } from "bun:test";
import {
  newTrackingToken,
  opens,
  parseTrackingLink,
  trackingUrl,
} from "#core/shipments/rules/tracking-link.ts";

const TOKEN = "AbCdEfGhIjKlMnOpQrSt-_";
const lastPart = (url: string | null) => url?.split("/t/")[1] ?? "";

test("an address is read back, and a shipment without a token has none", () => {
  const trackingToken = newTrackingToken();
  for (const shipmentId of [1, 35, 36, 123_456_789, 1e12 - 1]) {
    const url = trackingUrl("https://p.example", shipmentId, trackingToken);
    expect(parseTrackingLink(lastPart(url))).toEqual({ shipmentId, trackingToken });
  }
  expect(trackingUrl("https://p.example", 36, TOKEN)).toBe(`https://p.example/t/10-${TOKEN}`);
  expect([null, undefined].map((none) => trackingUrl("https://p.example", 36, none))).toEqual([
    ...[null, null],
  ]);
});

test("what is no address of ours names no shipment", () => {
  const tooFar = lastPart(trackingUrl("", 1e12, TOKEN));
  for (const text of ["", "10", `-${TOKEN}`, `0-${TOKEN}`, `10-${TOKEN}x`, tooFar]) {
    expect([text, parseTrackingLink(text)]).toEqual([text, null]);
  }
});

test("only the token of the shipment opens its page", () => {
  const link = { shipmentId: 1, trackingToken: TOKEN };
  const kept = [TOKEN, TOKEN.toLowerCase(), TOKEN.slice(1), undefined];
  expect(kept.map((one) => opens(link, one))).toEqual([true, false, false, false]);
});
