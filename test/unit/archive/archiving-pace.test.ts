/** Archiving takes a tenth of a core; a long wait for a store is not followed by a pause many times as long. */
import { expect, test } from "bun:test";
import { pauseAfterMs } from "#analytics/archive/start-archiving.ts";

test.each([
  [0, 0],
  [50, 450],
  [555, 4_995],
  [556, 5_000],
  [60_000, 5_000],
])("after %d ms of work it pauses for %d ms", (workMs, pauseMs) => {
  expect(pauseAfterMs(workMs)).toBe(pauseMs);
});
