/** What the measurements share: figures beside their limit or peer, medians, and the published table. */

/** Of a ratio (ours / peer), or of our own figure in its unit. */
export type Bound = Readonly<Partial<Record<"least" | "most" | "oursMost" | "oursLeast", number>>>;

export interface Figure {
  /** Its row in the published table (`rows.ts`). */
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
  /** What CI fails at; null = not looked at there. */
  readonly alarm?: Bound | null;
  /** Of row 14: the costs at every size. */
  readonly growth?: readonly Size[];
}

/** CPU microseconds an event. */
export type Cost = Readonly<{ redisUs: number; ownUs: number }>;

export interface Size {
  readonly shipments: number;
  readonly wholeWay: Cost;
  readonly toState: Cost;
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

export function isWithin(figure: Figure, bound: Bound | null | undefined): boolean {
  const { least = 0, most = Infinity, oursLeast = 0, oursMost = Infinity } = bound ?? {};
  const { ours, peer } = figure;
  const isRatioKept = peer === null || (ours / peer >= least && ours / peer <= most);
  return isRatioKept && ours >= oursLeast && ours <= oursMost;
}

export function reportText(report: Report, isJson: boolean): string {
  return isJson ? JSON.stringify(report) : `${report.machine}\n\n${tableRows(report.figures)}`;
}

export function tableRows(figures: readonly Figure[]): string {
  const head = "| # | Work | Ours | Beside | Unit | Ratio | Goal |\n|---|---|--:|---|---|--:|---|";
  return [head, ...figures.map(rowText)].join("\n");
}

const EVERYSEC = ", everysec";

/** How a figure is named that was measured with `appendfsync everysec`. */
export const everysecWork = (work: string) => `${work}${EVERYSEC}`;
export const isEverysec = (work: string) => work.endsWith(EVERYSEC);

function rowText(figure: Figure): string {
  const { row, work, ours, beside, peer, unit, goal, note = "" } = figure;
  const other = peer === null ? "" : `${shown(peer)} (${beside})`;
  const ratio = peer === null ? "" : (ours / peer).toFixed(2);
  const verdict = goal && `${boundText(goal, unit)} ${isWithin(figure, goal) ? "met" : "MISSED"}`;
  return `| ${row} | ${work} | ${shown(ours)} | ${other} | ${unit} | ${ratio} | ${verdict ?? note} |`;
}

export function boundText({ least, most, oursMost, oursLeast }: Bound, unit: string): string {
  const parts = [
    least !== undefined && `>= ${least.toFixed(2)}`,
    most !== undefined && `<= ${most.toFixed(2)}`,
    oursLeast !== undefined && `>= ${shown(oursLeast)} ${unit}`,
    oursMost !== undefined && `< ${shown(oursMost)} ${unit}`,
  ];
  return parts.filter(Boolean).join(", ");
}

function shown(value: number): string {
  if (value < 1) return value.toFixed(2);
  return value >= 1_000 ? Math.round(value).toLocaleString("en") : value.toFixed(1);
}
