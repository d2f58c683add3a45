/** docs/reliability.md says what was measured, and nothing that was not. */
import { expect, test } from "bun:test";
import { type Part, pageOf } from "#test/reliability/page.ts";
import type { Measured } from "#test/support/measured.ts";

const RUN = { startedAt: "2026-11-22T10:00:00Z", minutesAsked: 1, minutesTaken: 2, machine: "x" };
const killed: Part = {
  file: "test/fault/kill.test.ts",
  command: "npm run tool -- reliability",
  passed: true,
  measured: [
    {
      section: "Kill everything",
      name: "all",
      seconds: 3,
      kills: 5,
      inputs: 1_000,
      lost: 1,
      doubled: 2,
      recoverySeconds: [3, 1, 2],
      further: { webhooks: 7 },
    },
    { section: "Kill everything", name: "some", seconds: 4, kills: 2 },
  ],
};
const broken: Part = { file: "test/b.test.ts", command: "b", passed: false, measured: [] };

test("totals are sums, recoveries a median and the worst, and what was not measured is empty", () => {
  const page = pageOf({ ...RUN, parts: [killed], notRun: [] }, {});
  expect(page).toContain(
    "**7 kills, 0 faults, 1,000 inputs whose fate was checked: 1 lost, 2 doubled.**",
  );
  expect(page).toContain("| all | 3 | 5 |  | 1,000 | 1 | 2 | 2.00, 3.00 | kill |");
  expect(page).toContain("| some | 4 | 2 |  |  |  |  |  | kill |");
  expect(page).toContain("all: webhooks: 7.");
});

test("files that failed and files that were not run are named", () => {
  const page = pageOf({ ...RUN, parts: [broken], notRun: ["test/c.test.ts"] }, {});
  expect(page).toContain("**Failed in this run:** `test/b.test.ts`");
  expect(page).toContain("Not part of this run: `test/c.test.ts`.");
  expect(page).not.toContain("inputs");
});

test("what a machine does not allow is named with the reason, and is no row", () => {
  const row = {
    section: "Hurt everything",
    name: "a disk",
    seconds: 0,
    skipped: "no mounts",
  } as const;
  const page = pageOf({ ...RUN, parts: [{ ...killed, measured: [row] }], notRun: [] }, {});
  expect(page).toContain("**Not done in this run:** a disk (no mounts).");
  expect(page).not.toContain("| a disk");
});

test("a goal that was missed is told before the figures, and a soak has a table of its slopes", () => {
  const slope = { what: "memory in MiB", median: 512.4, perMinute: -0.25 };
  const row: Measured = {
    section: "Overload",
    name: "soak",
    seconds: 9,
    slopes: [slope],
    missed: ["the p99 is 30 % longer, 20 % are allowed"],
  };
  const page = pageOf({ ...RUN, parts: [{ ...killed, measured: [row] }], notRun: [] }, {});
  const missed = "**Not reached in this run:** soak: the p99 is 30 % longer, 20 % are allowed.";
  expect(page).toContain(missed);
  expect(page.indexOf(missed)).toBeLessThan(page.indexOf("## Overload"));
  expect(page).toContain("| memory in MiB | 512.4 | -0.25 |");
});

test("mutants are shares by file, and a survivor with a reason is listed", () => {
  const survivor = { line: 3, before: "<", after: "<=" };
  const record = {
    "core/a.ts": { tried: 20, survivors: [survivor, { ...survivor, reason: "never equal" }] },
    "core/b.ts": { tried: 80, survivors: [] },
  };
  const page = pageOf({ ...RUN, parts: [], notRun: [] }, record);
  expect(page).toContain("100 changes in 2 files, 98.0 % noticed");
  expect(page).toContain("| `core/a.ts` | 20 | 90.0 % | 1 |");
  expect(page).toContain("| `core/b.ts` | 80 | 100.0 % |  |");
  expect(page).toContain("- `core/a.ts`, line 3, `<` to `<=`: never equal");
});

test("a part that a later run took the place of is named with its time", () => {
  const again = { ...killed, againAt: "2026-11-22T13:00:00Z" };
  const page = pageOf({ ...RUN, parts: [again, broken], notRun: [] }, {});
  expect(page).toContain(
    "**Measured by itself** at 2026-11-22T13:00:00Z: `test/fault/kill.test.ts`.",
  );
});
