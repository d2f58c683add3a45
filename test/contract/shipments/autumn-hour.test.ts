/** Document 1, reconciliation: the procedure reads stamps back from their local text, also when the clocks go back. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { parseRomeDateTime, romeDateTime } from "#core/platform/time/rome-time.ts";
import { readShipments } from "#core/shipments/store/shipments.ts";
import { applyEvents } from "#test/support/data/facts.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

const STEP_MS = 600_000;
const CHANGED_AT_ONCE = 120;

let runtime: TestRuntime;

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup());
});

afterAll(() => runtime.end());

test("no statusUpdatedAt stands in the repeated hour, and none goes backwards", async () => {
  const from = Date.parse("2027-10-31T00:00:00Z");
  const stamps: number[] = [];
  for (let nowMs = from; nowMs <= from + 3 * 3_600_000; nowMs += STEP_MS) {
    const numbers = Array.from({ length: CHANGED_AT_ONCE }, (_, n) => `AUTUMN-${nowMs}-${n}`);
    const ids = await Promise.all(numbers.map((number) => addShipment(runtime, number)));
    const live = { ...runtime.live, now: () => nowMs };
    const events = ids.map((shipmentId) => ({ shipmentId, code: "TRN" }));
    await applyEvents({ redis: runtime.redis, live }, events);
    const rows = await readShipments(runtime.redis, ids);
    stamps.push(...rows.map(({ statusUpdatedAtMs }) => statusUpdatedAtMs ?? 0));
  }
  expect(stamps).toEqual([...stamps].sort((one, other) => one - other));
  expect(stamps.map((ms) => parseRomeDateTime(romeDateTime(ms)))).toEqual(stamps);
  expect(romeDateTime(stamps.at(-1) ?? 0)).toStartWith("2027-10-31 04:00");
});
