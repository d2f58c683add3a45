/**
 * Brings docs/performance.md up to date: `bun run bench --json > <file>`, then `bun bench/publish.ts <file>`. Rows that were
 * measured replace those of bench/results/performance.json, the others stay, and the tables of the page and the chart of row 14 are made from
 * all of them.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { growthChart } from "./growth-chart.ts";
import { isEverysec, type Report, tableRows } from "./table.ts";

const FOLDER = join(import.meta.dir, "../docs");
const FIGURES_FILE = join(import.meta.dir, "results/performance.json");
const PAGE_FILE = join(FOLDER, "performance.md");
const CHART_FILE = join(FOLDER, "growth.svg");

/** A row is replaced as a whole, and on its own with `appendfsync everysec`. */
export function merge(published: Report, measured: Report): Report {
  const kindOf = ({ row, work }: Report["figures"][number]) => `${row} ${isEverysec(work)}`;
  const fresh = new Set(measured.figures.map(kindOf));
  const kept = published.figures.filter((one) => !fresh.has(kindOf(one)));
  const figures = [...measured.figures, ...kept].sort((one, other) => one.row - other.row);
  return { machine: measured.machine, figures };
}

/** Writes the tables between their markers. @throws when the page lacks one */
export function rewritten(page: string, { figures }: Report): string {
  const shown = figures.filter(({ isDetail }) => !isDetail);
  const tables = {
    always: shown.filter(({ work }) => !isEverysec(work)),
    everysec: shown.filter(({ work }) => isEverysec(work)),
  };
  let text = page;
  for (const [name, rows] of Object.entries(tables)) {
    const [begin, end] = [`<!-- figures: ${name} -->\n`, `<!-- end of figures: ${name} -->`];
    const [from, to] = [text.indexOf(begin), text.indexOf(end)];
    if (from < 0 || to < from) throw new Error(`docs/performance.md has no table "${name}"`);
    text = `${text.slice(0, from)}${begin}\n${tableRows(rows)}\n\n${text.slice(to)}`;
  }
  return text;
}

async function readReport(path: string): Promise<Report> {
  const text = await readFile(path, "utf8");
  return JSON.parse(text);
}

if (import.meta.main) {
  const [, , path] = process.argv;
  if (path === undefined) throw new Error("bun bench/publish.ts <file>");
  const report = merge(await readReport(FIGURES_FILE), await readReport(path));
  await writeFile(FIGURES_FILE, `${JSON.stringify(report, null, 2)}\n`);
  await writeFile(PAGE_FILE, rewritten(await readFile(PAGE_FILE, "utf8"), report));
  const growth = report.figures.find((one) => one.growth)?.growth;
  if (growth) await writeFile(CHART_FILE, growthChart(growth, report.machine));
}
