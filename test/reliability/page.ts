/** docs/reliability.md from the report of a run: figures that were measured, and nothing else. */
import { availableParallelism, totalmem } from "node:os";
import type { MutantRecord } from "#test/mutation/record.ts";
import { type Measured, SECTIONS } from "#test/support/measured.ts";

export interface Part {
  readonly file: string;
  readonly command: string;
  readonly passed: boolean;
  readonly measured: readonly Measured[];
  /** When a later run took the place of this part of the run. */
  readonly againAt?: string;
}

export interface Report {
  readonly startedAt: string;
  readonly minutesAsked: number;
  readonly minutesTaken: number;
  readonly machine: string;
  readonly parts: readonly Part[];
  /** Files of the whole that this run did not come to. */
  readonly notRun: readonly string[];
}

export function machine(): string {
  const memory = Math.round(totalmem() / 1024 ** 3);
  return `${availableParallelism()} cores, ${memory} GiB of memory, Bun ${Bun.version}`;
}

export function pageOf(report: Report, mutants: MutantRecord): string {
  const all = report.parts.flatMap(({ file, measured }) => measured.map((row) => ({ file, row })));
  const rows = all.filter(({ row }) => row.skipped === undefined);
  const failed = report.parts.filter(({ passed }) => !passed);
  return [
    "# Reliability in figures",
    "",
    `A run of ${report.minutesTaken} minutes (\`npm run tool -- reliability --minutes ${report.minutesAsked}\`), started at ${report.startedAt}, on`,
    `${report.machine}. Senders and receivers keep books of their own; *lost* and *doubled* compare them with what`,
    "the product shows its merchants. A recovery is the time from the kill, or from the end of the fault, to the next event that was",
    "accepted. `test/reliability/reliability.json` has every figure. The same tests run in `npm run test:slow`, in their shortest form.",
    "",
    ...totals(rows.map(({ row }) => row)),
    ...failed.map(
      ({ file }) => `**Failed in this run:** \`${file}\`. What failed may have left no figures.\n`,
    ),
    ...report.parts.flatMap(({ file, againAt }) =>
      againAt === undefined ? [] : [`**Measured by itself** at ${againAt}: \`${file}\`.`, ""],
    ),
    ...(report.notRun.length > 0 ? [`Not part of this run: ${listed(report.notRun)}.`, ""] : []),
    ...all.flatMap(({ row: { name, skipped } }) =>
      skipped === undefined ? [] : [`**Not done in this run:** ${name} (${skipped}).`, ""],
    ),
    ...rows.flatMap(({ row: { name, missed = [] } }) =>
      missed.flatMap((goal) => [`**Not reached in this run:** ${name}: ${goal}.`, ""]),
    ),
    ...SECTIONS.flatMap((section) =>
      sectionOf(
        section,
        rows.filter(({ row }) => row.section === section),
      ),
    ),
    ...mutantsOf(mutants),
    "## Commands",
    "",
    "| Test | Command |",
    "|---|---|",
    ...report.parts.map(({ file, command }) => `| \`${file}\` | \`${command}\` |`),
    "",
  ].join("\n");
}

function mutantsOf(mutants: MutantRecord): string[] {
  const files = Object.entries(mutants);
  if (files.length === 0) return [];
  const tried = files.reduce((sum, [, file]) => sum + file.tried, 0);
  const alive = files.flatMap(([path, { survivors }]) => survivors.map((one) => ({ path, one })));
  const share = (all: number, left: number) => `${((100 * (all - left)) / all).toFixed(1)} %`;
  return [
    "## Tests that can fail",
    "",
    "`npm run tool -- mutate` changes one operator, number, condition, call or statement at a time and runs the tests of the file: a change",
    `that no test notices survives. ${tried.toLocaleString("en")} changes in ${files.length} files, ${share(tried, alive.length)} noticed. Files that are not listed`,
    "were not measured. `test/mutation/mutants.json` has every survivor.",
    "",
    "| File | Changes | Noticed | Survivors without a reason |",
    "|---|---|---|---|",
    ...files.map(([path, { tried: own, survivors }]) => {
      const open = survivors.filter(({ reason }) => reason === undefined).length;
      return `| \`${path}\` | ${own} | ${share(own, survivors.length)} | ${open || ""} |`;
    }),
    "",
    ...alive.flatMap(({ path, one: { line, before, after, reason } }) =>
      reason === undefined
        ? []
        : [`- \`${path}\`, line ${line}, \`${before}\` to \`${after}\`: ${reason}`],
    ),
    ...(alive.some(({ one }) => one.reason !== undefined) ? [""] : []),
  ];
}

function listed(files: readonly string[]): string {
  return files.map((file) => `\`${file}\``).join(", ");
}

function totals(rows: readonly Measured[]): string[] {
  if (rows.length === 0) return [];
  const sum = (name: "kills" | "faults" | "lost" | "doubled") =>
    rows.reduce((total, row) => total + (row[name] ?? 0), 0).toLocaleString("en");
  const checked = rows.filter(({ lost }) => lost !== undefined);
  const bad = rows
    .filter(({ section }) => section === "Bad input" || section === "Nobody in")
    .reduce((total, row) => total + (row.inputs ?? 0), 0);
  const inputs = checked.reduce((total, row) => total + (row.inputs ?? 0), 0).toLocaleString("en");
  return [
    `**${sum("kills")} kills, ${sum("faults")} faults, ${inputs} inputs whose fate was checked: ${sum("lost")} lost, ${sum("doubled")} doubled.**`,
    "",
    ...(bad > 0
      ? [
          `**${bad.toLocaleString("en")} bad inputs and attempts to get in**, each answered or refused.`,
          "",
        ]
      : []),
  ];
}

function sectionOf(
  section: string,
  rows: ReadonlyArray<{ readonly file: string; readonly row: Measured }>,
): string[] {
  if (rows.length === 0) return [];
  return [
    `## ${section}`,
    "",
    "| What | Seconds | Kills | Faults | Inputs | Lost | Doubled | Recovery in s: median, worst | Test |",
    "|---|---|---|---|---|---|---|---|---|",
    ...rows.map(({ file, row }) => {
      const cells = [row.seconds, row.kills, row.faults, row.inputs, row.lost, row.doubled];
      const name = file.split("/").at(-1)?.replace(".test.ts", "") ?? file;
      return `| ${row.name} | ${cells.map(numberOf).join(" | ")} | ${recoveryOf(row)} | ${name} |`;
    }),
    "",
    ...rows.flatMap(({ row }) => [...furtherOf(row), ...slopesOf(row)]),
  ];
}

function numberOf(value: number | undefined): string {
  return value === undefined ? "" : value.toLocaleString("en", { maximumFractionDigits: 1 });
}

function recoveryOf({ recoverySeconds = [] }: Measured): string {
  if (recoverySeconds.length === 0) return "";
  const sorted = recoverySeconds.toSorted((one, other) => one - other);
  const median = sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
  return `${median.toFixed(2)}, ${(sorted.at(-1) ?? 0).toFixed(2)}`;
}

function slopesOf({ name, slopes = [] }: Measured): string[] {
  if (slopes.length === 0) return [];
  const per = (value: number) => value.toLocaleString("en", { maximumFractionDigits: 2 });
  return [
    `How ${name} grows, by the straight line with the least squares:`,
    "",
    "| What | Median | More per minute |",
    "|---|---|---|",
    ...slopes.map(
      ({ what, median, perMinute }) => `| ${what} | ${numberOf(median)} | ${per(perMinute)} |`,
    ),
    "",
  ];
}

function furtherOf({ name, further = {} }: Measured): string[] {
  const figures = Object.entries(further).map(([what, value]) => `${what}: ${numberOf(value)}`);
  return figures.length === 0 ? [] : [`${name}: ${figures.join("; ")}.`, ""];
}
