/**
 * Every published figure (`rows.ts`), each beside its limit or peer from the same run: `bun run bench [--rows 1,3] [--quick]
 * [--check] [--json]`. Each part runs as a process of its own, one after the other, some once more with `appendfsync everysec`.
 * `--quick` takes small sizes and few runs, and leaves out `everysec` and what takes minutes; `--check` fails when a figure is
 * past its alarm. When a part fails, the others are printed all the same, and the exit status is 1.
 */
import { parseArgs } from "node:util";
import { everyPart, type PartRun } from "./every-part.ts";
import { PARTS, type Part } from "./rows.ts";
import { boundText, everysecWork, isWithin, type Report, reportText } from "./table.ts";

const flag = { type: "boolean", default: false } as const;
const { values } = parseArgs({
  options: { rows: { type: "string" }, quick: flag, check: flag, json: flag },
});
const wanted = values.rows?.split(",").map(Number);
const isWanted = (row: number) => wanted?.includes(row) ?? true;
const tell = (line: string) => process.stderr.write(`${line}\n`);

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
  const isTwice = !values.quick && [...everysec].some(isWanted);
  return (isTwice ? [[], ["--everysec"]] : [[]]).map((own) => ({
    name: [file, ...quick, ...own].join(" "),
    async measure() {
      const { machine, figures } = await measure(file, [...quick, ...own]);
      const kept = own.length === 0 ? rows : everysec;
      const named = figures
        .filter(({ row }) => isWanted(row) && kept.has(row))
        .map((one) => (own.length === 0 ? one : { ...one, work: everysecWork(one.work) }));
      return { machine, figures: named };
    },
  }));
}

/** Takes minutes whatever its size. */
const LONG_PART = "growth";
const parts = PARTS.filter(
  ({ file, rows }) => [...rows].some(isWanted) && !(values.quick && file === LONG_PART),
);
const { reports, failures } = await everyPart(parts.flatMap(runsOf), tell);
const figures = reports.flatMap((report) => report.figures).sort((one, two) => one.row - two.row);
const report: Report = { machine: reports[0]?.machine ?? "", figures };
process.stdout.write(`${reportText(report, values.json)}\n`);
for (const failure of failures) tell(failure);
const far = figures.filter((figure) => values.check && !isWithin(figure, figure.alarm));
for (const { work, ours, peer, unit, alarm } of far) {
  tell(`${work}: ${ours} ${unit} beside ${peer}, must be ${boundText(alarm ?? {}, unit)}`);
}
if (failures.length + far.length > 0) process.exitCode = 1;
