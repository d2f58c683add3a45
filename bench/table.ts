/** What the measurements share: figures beside their limit or peer, medians, the published table, a line about the machine. */
import { cpus } from "node:os";
import type { Redis } from "#core/platform/redis/client.ts";
import type { Size } from "./growth-chart.ts";

/** Of a ratio (ours / peer), or of our own figure in its unit. */
export interface Bound {
  readonly least?: number;
  readonly most?: number;
  readonly oursMost?: number;
  readonly oursLeast?: number;
}

export interface Figure {
  /** Its row in the published table (`bench/main.ts`). */
  readonly row: number;
  readonly work: string;
  /** Of ours, in `unit`. */
  readonly ours: number;
  /** What ours stands beside, measured in the same run; null where the goal is one of our own figure alone. */
  readonly beside: string | null;
  readonly peer: number | null;
  readonly unit: string;
  /** What the product means to keep; null = none. */
  readonly goal: Bound | null;
  /** Shown instead of a goal. */
  readonly note?: string;
  /** What CI fails at: wide, since its machines are shared; null = not looked at there. */
  readonly alarm?: Bound | null;
  /** One of those that another figure sums up: the command prints it, and the published page leaves it out. */
  readonly isDetail?: true;
  /** Of row 14: what its chart is drawn from. */
  readonly growth?: readonly Size[];
}

/** What a measurement prints with `--json`. */
export interface Report {
  readonly machine: string;
  readonly figures: readonly Figure[];
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

/** @param share 0.99 for the 99th percentile */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  const at = Math.min(sorted.length - 1, Math.floor(sorted.length * share));
  return sorted[at] ?? Number.NaN;
}

export function ratioOf({ ours, peer }: Figure): number | null {
  return peer === null ? null : ours / peer;
}

export function isWithin(figure: Figure, bound: Bound | null | undefined): boolean {
  const { least = 0, most = Number.POSITIVE_INFINITY } = bound ?? {};
  const ratio = ratioOf(figure);
  const isRatioKept = ratio === null || (ratio >= least && ratio <= most);
  const { oursLeast = 0, oursMost = Number.POSITIVE_INFINITY } = bound ?? {};
  return isRatioKept && figure.ours >= oursLeast && figure.ours <= oursMost;
}

export function machine(redisVersion: string): string {
  const [cpu] = cpus();
  return `${cpus().length} x ${cpu?.model ?? "?"}, Bun ${Bun.version}, Redis ${redisVersion}`;
}

export async function redisVersion(redis: Redis): Promise<string> {
  return /redis_version:(\S+)/.exec(await redis.info("server"))?.[1] ?? "?";
}

/** Prints a table, or one JSON object with `--json`. */
export function print(figures: readonly Figure[], about: string, isJson: boolean): void {
  const report: Report = { machine: about, figures };
  const text = isJson ? JSON.stringify(report) : tableText(report);
  process.stdout.write(`${text}\n`);
}

function tableText({ machine: about, figures }: Report): string {
  return [about, "", tableRows(figures)].join("\n");
}

export function tableRows(figures: readonly Figure[]): string {
  const head = [
    "| # | Work | Ours | Beside | Unit | Ratio | Goal |",
    "|---|---|--:|---|---|--:|---|",
  ];
  return [...head, ...figures.map(rowText)].join("\n");
}

const EVERYSEC = ", everysec";

/** How a figure is named that was measured with `appendfsync everysec`. */
export const everysecWork = (work: string) => `${work}${EVERYSEC}`;
export const isEverysec = (work: string) => work.endsWith(EVERYSEC);

export function rowText(figure: Figure): string {
  const { row, work, ours, beside, peer, unit, goal, note } = figure;
  const other = peer === null ? "" : `${shown(peer)} (${beside})`;
  const ratio = ratioOf(figure)?.toFixed(2) ?? "";
  const verdict =
    goal === null
      ? (note ?? "")
      : `${boundText(goal, unit)} ${isWithin(figure, goal) ? "met" : "MISSED"}`;
  return `| ${row} | ${work} | ${shown(ours)} | ${other} | ${unit} | ${ratio} | ${verdict} |`;
}

export function boundText({ least, most, oursMost, oursLeast }: Bound, unit: string): string {
  const parts = [
    ...(least === undefined ? [] : [`>= ${least.toFixed(2)}`]),
    ...(most === undefined ? [] : [`<= ${most.toFixed(2)}`]),
    ...(oursLeast === undefined ? [] : [`>= ${shown(oursLeast)} ${unit}`]),
    ...(oursMost === undefined ? [] : [`< ${shown(oursMost)} ${unit}`]),
  ];
  return parts.join(", ");
}

function shown(value: number): string {
  if (value < 1) return value.toFixed(2);
  return value >= 1_000 ? Math.round(value).toLocaleString("en") : value.toFixed(1);
}
