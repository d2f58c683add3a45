/** What a chart over time shows. */

export const TONES = [
  "indigo",
  "teal",
  "orange",
  "grape",
  "cyan",
  "pink",
  "lime",
  "red",
  "yellow",
  "gray",
] as const;
export type Tone = (typeof TONES)[number];

export interface TimePoint {
  /** UTC milliseconds; of a bar its begin. */
  readonly at: number;
  /** null: there is none that may be shown. */
  readonly value: number | null;
  /** Beside the value: a sample, an interval. */
  readonly note?: string;
  /** Of a period that has not been seen in whole. */
  readonly isPartial?: boolean;
}

export interface TimeSeries {
  readonly name: string;
  readonly tone: Tone;
  readonly points: readonly TimePoint[];
}

export interface TimeChartProps {
  /** What is shown, for screen readers. */
  readonly label: string;
  readonly series: readonly TimeSeries[];
  /** UTC milliseconds. */
  readonly from: number;
  readonly to: number;
  /** Of the values, at the axis. */
  readonly unit: string;
  readonly write: (value: number) => string;
  /** Of an instant, in the tooltip. */
  readonly writeAt: (at: number) => string;
  /** Neighbours farther apart are not joined. */
  readonly gapMs: number;
  /** Bars of that width instead of lines, the series of an instant on top of one another. */
  readonly barMs?: number;
  /** Where the values end by nature: 1 for shares. */
  readonly max?: number;
  readonly height?: number;
}

interface Segment {
  readonly from: TimePoint;
  readonly to: TimePoint;
  readonly isPartial: boolean;
}

/** Neighbours that a straight line joins: none across a value that is withheld, and none across a gap. */
export function segmentsOf(points: readonly TimePoint[], gapMs: number): readonly Segment[] {
  return points.flatMap((to, at) => {
    const from = points[at - 1];
    if (!from || from.value === null || to.value === null || to.at - from.at > gapMs) return [];
    return [{ from, to, isPartial: Boolean(from.isPartial || to.isPartial) }];
  });
}

/** By name, always in the same order: a courier keeps its colour while others come and go. */
export function toneOf(name: string, all: readonly string[]): Tone {
  return TONES[[...all].sort().indexOf(name) % TONES.length] ?? "gray";
}
