/** What the measurements share: medians, a table of figures beside their limit or peer, one line about the machine. */
import { cpus } from "node:os";

export interface Figure {
  readonly work: string;
  /** Of ours, in `unit`. */
  readonly ours: number;
  /** What ours stands beside, measured in the same run. */
  readonly beside: string;
  readonly peer: number;
  readonly unit: string;
  /** The bound `ratio` (ours / peer) must keep; null = no goal. */
  readonly goal: { readonly least?: number; readonly most?: number } | null;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

export function ratioOf({ ours, peer }: Figure): number {
  return ours / peer;
}

export function isMet(figure: Figure): boolean {
  const { least = 0, most = Number.POSITIVE_INFINITY } = figure.goal ?? {};
  const ratio = ratioOf(figure);
  return ratio >= least && ratio <= most;
}

export function machine(redisVersion: string): string {
  const [cpu] = cpus();
  return `${cpus().length} x ${cpu?.model ?? "?"}, Bun ${Bun.version}, Redis ${redisVersion}`;
}

/** Prints a table, or one JSON object with `--json`. */
export function print(figures: readonly Figure[], about: string, isJson: boolean): void {
  const rows = figures.map((figure) => ({ ...figure, ratio: ratioOf(figure), met: isMet(figure) }));
  const text = isJson ? JSON.stringify({ machine: about, figures: rows }) : tableText(rows, about);
  process.stdout.write(`${text}\n`);
}

function tableText(
  rows: ReadonlyArray<Figure & { readonly ratio: number; readonly met: boolean }>,
  about: string,
): string {
  const lines = rows.map(({ work, ours, beside, peer, unit, ratio, goal, met }) => {
    const verdict = goal === null ? "" : `${goalText(goal)} ${met ? "met" : "MISSED"}`;
    return `| ${work} | ${shown(ours)} | ${shown(peer)} (${beside}) | ${unit} | ${ratio.toFixed(2)} | ${verdict} |`;
  });
  const head = ["| Work | Ours | Beside | Unit | Ratio | Goal |", "|---|---|---|---|---|---|"];
  return [about, "", ...head, ...lines].join("\n");
}

function goalText({ least, most }: NonNullable<Figure["goal"]>): string {
  return least === undefined ? `<= ${most?.toFixed(2)}` : `>= ${least.toFixed(2)}`;
}

function shown(value: number): string {
  return value >= 1_000 ? Math.round(value).toLocaleString("en") : value.toFixed(1);
}
