import { expect, test } from "bun:test";
import { isNoticeDue, NOTICE_MS, waitingLine } from "#cli/archive/waiting.ts";

test("whoever waits for a channel is told after each half minute in which nothing came back", () => {
  expect(isNoticeDue(NOTICE_MS - 1, 0)).toBe(false);
  expect(isNoticeDue(NOTICE_MS, 0)).toBe(true);
  expect(isNoticeDue(NOTICE_MS, 1)).toBe(false);
  expect(isNoticeDue(2 * NOTICE_MS, 1)).toBe(true);
});

test("the line names what does not answer", () => {
  const line = (bytes: number | null, behindSeconds: number | null) =>
    waitingLine(31_000, { bytes, behindSeconds });
  expect(line(null, 5)).toContain("for 31 s: ClickHouse does not answer");
  expect(line(1, null)).toContain("the archiver has not ended a round yet");
  expect(line(1, 300)).toContain("ended 300 s ago. Is the analytics role running?");
});
