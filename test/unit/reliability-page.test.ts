/** docs/reliability.md says what was measured, and nothing that was not. */
import { expect, test } from "bun:test";
import { type Part, pageOf } from "#test/reliability/page.ts";

const RUN = { startedAt: "2026-11-22T10:00:00Z", minutesAsked: 1, minutesTaken: 2, machine: "x" };
const killed: Part = {
  ...{ file: "test/fault/kill.test.ts", command: "bun run reliability", passed: true },
  measured: [
    {
      ...{ section: "Kill everything", name: "all", seconds: 3, kills: 5, inputs: 1_000 },
      ...{ lost: 1, doubled: 2, recoverySeconds: [3, 1, 2], further: { webhooks: 7 } },
    },
    { section: "Kill everything", name: "some", seconds: 4, kills: 2 },
  ],
};
const broken: Part = { file: "test/b.test.ts", command: "b", passed: false, measured: [] };

test("totals are sums, recoveries a median and the worst, and what was not measured is empty", () => {
  const page = pageOf({ ...RUN, parts: [killed], notRun: [] });
  expect(page).toContain(
    "**7 kills, 0 faults, 1,000 inputs whose fate was checked: 1 lost, 2 doubled.**",
  );
  expect(page).toContain("| all | 3 | 5 |  | 1,000 | 1 | 2 | 2.00, 3.00 | kill |");
  expect(page).toContain("| some | 4 | 2 |  |  |  |  |  | kill |");
  expect(page).toContain("all: webhooks: 7.");
});

test("files that failed and files that were not run are named", () => {
  const page = pageOf({ ...RUN, parts: [broken], notRun: ["test/c.test.ts"] });
  expect(page).toContain("**Failed in this run:** `test/b.test.ts`");
  expect(page).toContain("Not part of this run: `test/c.test.ts`.");
  expect(page).not.toContain("inputs");
});
