/**
 * Every published figure, each beside its limit or peer from the same run: `bun run bench [--rows 1,3] [--quick] [--check]
 * [--json]`. Each part runs as a process of its own, one after the other; rows 1, 3, 4 and 8 once more with
 * `appendfsync everysec`. `--quick` takes small sizes and few runs, and leaves out `everysec` and what takes minutes;
 * `--check` fails when a figure is past its alarm, far from its goal.
 */
import { parseArgs } from "node:util";
import { boundText, everysecWork, type Figure, isWithin, print, type Report } from "./table.ts";

interface Part {
  /** `bench/<file>.ts`, which takes `--json`, `--quick` and, where it applies, `--everysec`. */
  readonly file: string;
  readonly rows: readonly number[];
  /** Rows that are measured with `appendfsync everysec` too. */
  readonly everysec: readonly number[];
  /** What takes minutes whatever its size. */
  readonly isLong?: true;
}

const PARTS: readonly Part[] = [
  { file: "ingest", rows: [1, 2, 5], everysec: [1] },
  { file: "track", rows: [3], everysec: [3] },
  { file: "end-to-end", rows: [4], everysec: [4] },
  { file: "first-attempt", rows: [6, 19], everysec: [] },
  { file: "webhooks", rows: [7, 8], everysec: [8] },
  { file: "seen", rows: [9], everysec: [] },
  { file: "shipment-memory", rows: [10], everysec: [] },
  { file: "search", rows: [11], everysec: [] },
  { file: "benchmarks", rows: [12], everysec: [] },
  { file: "import", rows: [13], everysec: [] },
  { file: "growth", rows: [14], everysec: [], isLong: true },
  { file: "processes", rows: [15], everysec: [], isLong: true },
  { file: "one-endpoint", rows: [16, 17], everysec: [] },
  { file: "idle", rows: [18], everysec: [] },
  { file: "archive", rows: [20, 21, 22, 23], everysec: [] },
];

const { values } = parseArgs({
  options: {
    rows: { type: "string" },
    quick: { type: "boolean", default: false },
    check: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const wanted = values.rows?.split(",").map(Number);
const isWanted = (row: number) => wanted?.includes(row) ?? true;

/** @throws when the part fails or prints no report */
async function measure(file: string, flags: readonly string[]): Promise<Report> {
  const child = Bun.spawn([process.execPath, `bench/${file}.ts`, "--json", ...flags], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const text = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error(`bench/${file}.ts ended with ${child.exitCode}`);
  return JSON.parse(text.trim().split("\n").at(-1) ?? "");
}

async function measurePart({ file, rows, everysec }: Part): Promise<Report[]> {
  const quick = values.quick ? ["--quick"] : [];
  const reports: Report[] = [];
  const isTwice = !values.quick && everysec.some(isWanted);
  for (const flags of isTwice ? [[], ["--everysec"]] : [[]]) {
    process.stderr.write(`${[file, ...quick, ...flags].join(" ")}\n`);
    const { machine, figures } = await measure(file, [...quick, ...flags]);
    const kept = flags.length === 0 ? rows : everysec;
    const named = figures
      .filter(({ row }) => isWanted(row) && kept.includes(row))
      .map((one) => (flags.length === 0 ? one : { ...one, work: everysecWork(one.work) }));
    reports.push({ machine, figures: named });
  }
  return reports;
}

/** @returns whether every figure keeps away from its alarm */
function check(figures: readonly Figure[]): boolean {
  const far = figures.filter((figure) => !isWithin(figure, figure.alarm));
  for (const { work, ours, peer, unit, alarm } of far) {
    process.stderr.write(
      `${work}: ${ours} ${unit} beside ${peer}, must be ${boundText(alarm ?? {}, unit)}\n`,
    );
  }
  return far.length === 0;
}

const reports: Report[] = [];
for (const part of PARTS) {
  if (!part.rows.some(isWanted) || (values.quick && part.isLong)) continue;
  reports.push(...(await measurePart(part)));
}
const figures = reports
  .flatMap((report) => report.figures)
  .sort((one, other) => one.row - other.row);
print(figures, reports[0]?.machine ?? "", values.json);
if (values.check && !check(figures)) process.exitCode = 1;
