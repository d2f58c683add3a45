import { expect, test } from "bun:test";
import { followSilentEndpoints, mostSilent } from "#processors/webhooks/silent-endpoints.ts";

const VAIN_MS = 1_000;
const of = {
  partition: 3,
  endpointId: "ep",
  deliveryId: "dlv",
  lease: "1",
  failing: false,
  silent: false,
  companyId: 1,
  most: 256,
};
const inVain = (beganAtMs: number, endedAtMs: number) => ({
  beganAtMs,
  endedAtMs,
  isAnswered: false,
});
const answer = (endedAtMs: number) => ({ beganAtMs: 0, endedAtMs, isAnswered: true });

test("an endpoint is silent once an attempt has waited in vain", () => {
  const silent = followSilentEndpoints(VAIN_MS);
  expect(silent.has("ep")).toBe(false);
  silent.ended(of, inVain(0, VAIN_MS));
  expect(silent.has("ep")).toBe(true);
  expect(silent.partitions(VAIN_MS)).toEqual(new Set([3]));
});

test("one that refuses is not", () => {
  const silent = followSilentEndpoints(VAIN_MS);
  silent.ended(of, inVain(0, VAIN_MS - 1));
  expect(silent.has("ep")).toBe(false);
});

test("one that answered another attempt meanwhile is not", () => {
  const silent = followSilentEndpoints(VAIN_MS);
  silent.ended(of, answer(5_000));
  silent.ended(of, inVain(4_000, 14_000));
  expect(silent.has("ep")).toBe(false);
  silent.ended(of, inVain(5_001, 15_000));
  expect(silent.has("ep")).toBe(true);
});

test("an answer ends it, and so does a minute without an attempt in vain", () => {
  const silent = followSilentEndpoints(VAIN_MS);
  silent.ended(of, inVain(0, 10_000));
  silent.ended(of, answer(10_001));
  expect(silent.has("ep")).toBe(false);
  silent.ended(of, inVain(10_002, 20_000));
  expect(silent.partitions(79_999).size).toBe(1);
  expect(silent.partitions(80_000).size).toBe(0);
  expect(silent.has("ep")).toBe(false);
});

test.each([
  [null, 2_000],
  [8_000, 2_000],
  [7_999, 1_999],
  [1_024, 256],
])("of %p open files at most %i wait for silent endpoints", (openFiles, most) => {
  expect(mostSilent(openFiles)).toBe(most);
});
