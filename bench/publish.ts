/**
 * Brings docs/performance.md up to date: `bun run bench --json > <file>`, then `bun bench/publish.ts <file>`. Rows that were
 * measured replace those of bench/results/performance.json, the others stay, and the tables of the page, and of row 14 in
 * docs/scale.md, are made from all of them.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isEverysec, type Report, type Size, tableRows } from "./table.ts";

const FOLDER = join(import.meta.dir, "../docs");
const FIGURES_FILE = join(import.meta.dir, "results/performance.json");
const PAGE_FILE = join(FOLDER, "performance.md");
const SCALE_FILE = join(FOLDER, "scale.md");

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
  const tables = {
    always: figures.filter(({ work }) => !isEverysec(work)),
    everysec: figures.filter(({ work }) => isEverysec(work)),
  };
  return Object.entries(tables).reduce(
    (text, [name, rows]) => between(text, `figures: ${name}`, tableRows(rows)),
    page,
  );
}

/** @throws when the page lacks the markers */
function between(page: string, name: string, table: string): string {
  const [begin, end] = [`<!-- ${name} -->\n`, `<!-- end of ${name} -->`];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`the page has no table "${name}"`);
  return `${page.slice(0, from)}${begin}\n${table}\n\n${page.slice(to)}`;
}

/** The costs of row 14, microseconds an event: the whole way and event log to state, and of each Redis' part. */
export function withGrowth(page: string, sizes: readonly Size[]): string {
  const rows = sizes.map(({ shipments, wholeWay, toState }) => {
    const costs = [wholeWay, toState].flatMap(({ redisUs, ownUs }) => [redisUs + ownUs, redisUs]);
    const cells = [shipments.toLocaleString("en"), ...costs.map(Math.round)];
    return `| ${cells.join(" | ")} |`;
  });
  const head = "| shipments | end to end | of it Redis | event log to state | of it Redis |";
  return between(page, "growth", [head, "|--:|--:|--:|--:|--:|", ...rows].join("\n"));
}

if (import.meta.main) {
  const [, , path] = process.argv;
  if (path === undefined) throw new Error("bun bench/publish.ts <file>");
  const report = merge(await Bun.file(FIGURES_FILE).json(), await Bun.file(path).json());
  await writeFile(FIGURES_FILE, `${JSON.stringify(report, null, 2)}\n`);
  await writeFile(PAGE_FILE, rewritten(await readFile(PAGE_FILE, "utf8"), report));
  const growth = report.figures.find((one) => one.growth)?.growth;
  if (growth) {
    await writeFile(SCALE_FILE, withGrowth(await readFile(SCALE_FILE, "utf8"), growth));
  }
}
