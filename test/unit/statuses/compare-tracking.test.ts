/** The first-day comparison: which event stands for which line. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { compareTracking } from "#core/events/rules/compare-tracking.ts";

const AT = 1_795_000_000_000;
const line = (number: number, code: string, atMs: number) => ({
  line: number,
  trackingNumber: "TN",
  code,
  occurredAtMs: AT + atMs,
});
const received = (eventId: string, code: string, atMs: number) => ({
  eventId,
  code,
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
  expect([by(59_999), by(-59_999)]).toEqual(["2 same a", "2 same a"]);
  expect([by(60_000), by(-60_000)]).toEqual(["2 otherTime a", "2 otherTime a"]);
  expect([by(86_399_999), by(86_400_000)]).toEqual(["2 otherTime a", "2 notReceived -"]);
});

test("another code at the same time stands for a line only where none with its code does", () => {
  const lines = [line(2, "OUT", 0), line(3, "DLV", 1_000)];
  const events = [received("a", "DLV", 0), received("b", "X", 0), received("c", "Y", 3_600_000)];
  expect(resultsOf(lines, events)).toEqual(["2 otherCode b", "3 same a", "left c"]);
});

test("a line is matched with the nearest event, however they came", () => {
  const near = received("near", "TRN", -1_000);
  const far = received("far", "TRN", 30_000);
  for (const events of [
    [near, far],
    [far, near],
  ]) {
    expect(resultsOf([line(2, "TRN", 0)], events)).toEqual(["2 same near", "left far"]);
  }
});

test("an event stands for one line alone, the nearest one first", () => {
  const lines = [line(2, "TRN", 0), line(3, "TRN", 10_000), line(4, "TRN", 20_000)];
  const events = [received("a", "TRN", 10_000), received("b", "TRN", 7_200_000)];
  const results = resultsOf(lines, events);
  expect(results.filter((one) => one.endsWith(" a"))).toHaveLength(1);
  expect(results.filter((one) => one.includes("notReceived"))).toHaveLength(1);
});

test("whatever the lines and events are, each line gets the nearest event that is left, in the order of the rounds", () => {
  // Lines stand 499 ms off whole seconds, on which events are, so that no two events are equally near.
  const code = fc.constantFrom("TRN", "OUT", "DLV");
  const second = fc.nat({ max: 200 }).map((n) => n * 997);
  const given = fc.record({
    lines: fc.array(fc.tuple(code, second), { maxLength: 12 }),
    events: fc.uniqueArray(fc.tuple(code, second), { maxLength: 12, selector: ([, at]) => at }),
  });
  fc.assert(
    fc.property(given, ({ lines, events }) => {
      const tracked = lines.map(([of, at], index) => line(index, of, at * 1_000 + 499));
      const arrived = events.map(([of, at], index) => received(`e${index}`, of, at * 1_000));
      const left = new Set(arrived);
      const expected = new Map<number, string>();
      for (const [result, isSame, within] of [
        ["same", true, 60_000],
        ["otherTime", true, 86_400_000],
        ["otherCode", false, 60_000],
      ] as const) {
        for (const one of tracked.filter((each) => !expected.has(each.line))) {
          const distance = (event: { occurredAtMs: number }) =>
            Math.abs(event.occurredAtMs - one.occurredAtMs);
          const [nearest] = [...left]
            .filter((event) => (event.code === one.code) === isSame && distance(event) < within)
            .sort((a, b) => distance(a) - distance(b));
          if (!nearest) continue;
          left.delete(nearest);
          expected.set(one.line, `${result} ${nearest.eventId}`);
        }
      }
      expect(resultsOf(tracked, arrived)).toEqual([
        ...tracked.map((one) => `${one.line} ${expected.get(one.line) ?? "notReceived -"}`),
        ...arrived.filter((one) => left.has(one)).map(({ eventId }) => `left ${eventId}`),
      ]);
    }),
  );
});
