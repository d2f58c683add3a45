/** Archiving takes a tenth of a core, and a store that was away for a while does not make it pause for many times that while. */
import { expect, test } from "bun:test";
import { pauseAfterMs } from "#analytics/start-archiving.ts";

test.each([
  [0, 0],
  [50, 450],
  [555, 4_995],
  [556, 5_000],
  [60_000, 5_000],
])("after %d ms of work it pauses for %d ms", (workMs, pauseMs) => {
  expect(pauseAfterMs(workMs)).toBe(pauseMs);
});
