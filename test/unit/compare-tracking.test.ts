/** The first-day comparison: which event stands for which line. */
import { expect, test } from "bun:test";
import {
  compareTracking,
  OTHER_TIME_MS,
  SAME_TIME_MS,
} from "#core/domain/courier-events/compare-tracking.ts";

const AT = 1_795_000_000_000;
const line = (number: number, code: string, atMs: number) => ({
  ...{ line: number, trackingNumber: "TN", code },
  occurredAtMs: AT + atMs,
});
const received = (eventId: string, code: string, atMs: number) => ({
  ...{ eventId, code },
  occurredAtMs: AT + atMs,
});
const resultsOf = (...given: Parameters<typeof compareTracking>) => {
  const { lines, left } = compareTracking(...given);
  return [
    ...lines.map((one) => `${one.line} ${one.result} ${one.received?.eventId ?? "-"}`),
    ...left.map(({ eventId }) => `left ${eventId}`),
  ];
};

test("a code within a minute is the same, within a day another time, and nothing further off", () => {
  const by = (distanceMs: number) =>
    resultsOf([line(2, "TRN", 0)], [received("a", "TRN", distanceMs)])[0];
  expect(by(SAME_TIME_MS - 1)).toBe("2 same a");
  expect(by(-SAME_TIME_MS)).toBe("2 otherTime a");
  expect(by(OTHER_TIME_MS - 1)).toBe("2 otherTime a");
  expect(by(OTHER_TIME_MS)).toBe("2 notReceived -");
});

test("another code at the same time stands for a line only where none with its code does", () => {
  const lines = [line(2, "OUT", 0), line(3, "DLV", 1_000)];
  const events = [received("a", "DLV", 0), received("b", "X", 0), received("c", "Y", 3_600_000)];
  expect(resultsOf(lines, events)).toEqual(["2 otherCode b", "3 same a", "left c"]);
});

test("an event stands for one line alone, the nearest one first", () => {
  const lines = [line(2, "TRN", 0), line(3, "TRN", 10_000), line(4, "TRN", 20_000)];
  const events = [received("a", "TRN", 10_000), received("b", "TRN", 7_200_000)];
  const results = resultsOf(lines, events);
  expect(results.filter((one) => one.endsWith(" a"))).toHaveLength(1);
  expect(results.filter((one) => one.includes("notReceived"))).toHaveLength(1);
});
