/**
 * Every published figure, each beside its limit or peer from the same run: `bun run bench [--rows 1,3] [--quick] [--check]
 * [--json]`. Each part runs as a process of its own, one after the other; rows 1, 3, 4 and 8 once more with
 * `appendfsync everysec`. `--quick` takes small sizes and few runs, and leaves out `everysec` and what takes minutes;
 * `--check` fails when a figure is past its alarm, far from its goal. When a part fails, the others are measured and printed
 * all the same, and the exit status is 1. Standard error shows how long each part took.
 */
import { parseArgs } from "node:util";
import { everyPart, type PartRun } from "./every-part.ts";
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
  { file: "archive", rows: [20, 21, 22], everysec: [] },
  { file: "archive-reads", rows: [23, 24, 25], everysec: [] },
  { file: "panel", rows: [26, 27, 28, 29], everysec: [] },
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

function runsOf({ file, rows, everysec }: Part): PartRun[] {
  const quick = values.quick ? ["--quick"] : [];
  const isTwice = !values.quick && everysec.some(isWanted);
  return (isTwice ? [[], ["--everysec"]] : [[]]).map((own) => ({
    name: [file, ...quick, ...own].join(" "),
    async measure() {
      const { machine, figures } = await measure(file, [...quick, ...own]);
      const kept = own.length === 0 ? rows : everysec;
      const named = figures
        .filter(({ row }) => isWanted(row) && kept.includes(row))
        .map((one) => (own.length === 0 ? one : { ...one, work: everysecWork(one.work) }));
      return { machine, figures: named };
    },
  }));
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

const parts = PARTS.filter(({ rows, isLong }) => rows.some(isWanted) && !(values.quick && isLong));
const { reports, failures } = await everyPart(parts.flatMap(runsOf), (line) =>
  process.stderr.write(`${line}\n`),
);
const figures = reports
  .flatMap((report) => report.figures)
  .sort((one, other) => one.row - other.row);
print(figures, reports[0]?.machine ?? "", values.json);
for (const failure of failures) process.stderr.write(`${failure}\n`);
if (failures.length > 0 || (values.check && !check(figures))) process.exitCode = 1;
