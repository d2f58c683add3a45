/**
 * Values over time: instants stand where they happened, straight lines join neighbours, and nothing is drawn where there is
 * no value. Read by pointer, by the arrow keys, and aloud.
 */
import { VisuallyHidden } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { type KeyboardEvent, type PointerEvent, useState } from "react";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { ChartKeys } from "./chart-keys.tsx";
import { ChartTip } from "./chart-tip.tsx";
import css from "./charts.module.css";
import { type TimeTicks, timeTicks, valueTicks } from "./scale.ts";
import { segmentsOf, type TimeChartProps, type TimePoint, type TimeSeries } from "./series.ts";

const PAD = { top: 26, right: 12, bottom: 22, left: 46 } as const;
const TICK_PX = 64;
const VALUE_TICKS = 4;
/** With more of them a line without dots is easier to read. */
const DOTS_LIMIT = 40;
const DOT_PX = 3;

export function TimeChart(props: TimeChartProps) {
  const { label, series, from, to, unit, write, height = 220, barMs, max } = props;
  const { t } = useText();
  const { ref, width } = useElementSize();
  const reading = useReading(props, width);
  const values = valueTicks(max ?? highest(series, barMs !== undefined), VALUE_TICKS);
  const top = max ?? values.at(-1) ?? 1;
  const x = (at: number) =>
    PAD.left + ((at - from) / Math.max(1, to - from)) * Math.max(1, width - PAD.left - PAD.right);
  const y = (value: number) =>
    height - PAD.bottom - (value / top) * (height - PAD.bottom - PAD.top);
  const plot = { ...props, x, y };
  const hasPartial = series.some(({ points }) => points.some(({ isPartial }) => isPartial));
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is a part of a form
    <div
      ref={ref}
      className={css["figure"]}
      role="group"
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys go through its instants
      tabIndex={0}
      {...reading.handlers}
    >
      {width > 0 && (
        <svg className={css["plot"]} height={height} aria-hidden>
          <text x={0} y={12}>
            {unit}
          </text>
          {values.map((value) => (
            <g key={value}>
              <line
                className={css["grid"]}
                x1={PAD.left}
                x2={width - PAD.right}
                y1={y(value)}
                y2={y(value)}
              />
              <text x={PAD.left - 6} y={y(value) + 4} textAnchor="end">
                {write(value)}
              </text>
            </g>
          ))}
          <TimeAxis
            ticks={timeTicks(from, to, Math.max(2, (width - PAD.left) / TICK_PX))}
            x={x}
            y={height - 6}
          />
          {barMs === undefined ? <Lines {...plot} /> : <Bars {...plot} barMs={barMs} />}
          {reading.at !== null && (
            <line
              className={css["cursor"]}
              x1={x(reading.at + (barMs ?? 0) / 2)}
              x2={x(reading.at + (barMs ?? 0) / 2)}
              y1={PAD.top}
              y2={height - PAD.bottom}
            />
          )}
        </svg>
      )}
      {reading.at !== null && (
        <ChartTip {...props} at={reading.at} x={x(reading.at)} width={width} />
      )}
      <ChartKeys keys={series} {...(hasPartial && { partial: t.charts.partial })} />
      <VisuallyHidden role="status">{reading.told}</VisuallyHidden>
    </div>
  );
}

function highest(series: readonly TimeSeries[], isStacked: boolean): number {
  const points = series.flatMap((one) => one.points);
  if (!isStacked) return Math.max(0, ...points.map(({ value }) => value ?? 0));
  const sums = new Map<number, number>();
  for (const { at, value } of points) sums.set(at, (sums.get(at) ?? 0) + (value ?? 0));
  return Math.max(0, ...sums.values());
}

interface TimeAxisProps {
  readonly ticks: TimeTicks;
  readonly x: (at: number) => number;
  readonly y: number;
}

function TimeAxis({ ticks, x, y }: TimeAxisProps) {
  const f = useFormat();
  const write = { second: f.hour, hour: f.hour, day: f.day, month: f.month }[ticks.unit];
  return ticks.at.map((at) => (
    <text key={at} x={x(at)} y={y} textAnchor="middle">
      {write(at)}
    </text>
  ));
}

interface PlotProps extends TimeChartProps {
  readonly x: (at: number) => number;
  readonly y: (value: number) => number;
}

function Lines({ series, gapMs, x, y }: PlotProps) {
  const pointOf = ({ at, value }: TimePoint) => `${x(at)} ${y(value ?? 0)}`;
  return series.map(({ name, tone, points }) => {
    const segments = segmentsOf(points, gapMs);
    const path = (partial: boolean) =>
      segments
        .filter(({ isPartial }) => isPartial === partial)
        .map(({ from, to }) => `M${pointOf(from)}L${pointOf(to)}`)
        .join("");
    const joined = new Set(segments.flatMap(({ from, to }) => [from, to]));
    const dots = points.filter((one) => points.length <= DOTS_LIMIT || !joined.has(one));
    return (
      <g key={name} data-tone={tone} data-series={name}>
        <path className={css["line"]} d={path(false)} />
        <path className={`${css["line"]} ${css["partial"]}`} d={path(true)} />
        {dots.map((one) =>
          one.value === null ? null : (
            <circle
              key={one.at}
              className={`${css["dot"]} ${one.isPartial ? css["hollow"] : ""}`}
              cx={x(one.at)}
              cy={y(one.value)}
              r={DOT_PX}
            />
          ),
        )}
      </g>
    );
  });
}

function Bars({ series, barMs, x, y }: PlotProps & { readonly barMs: number }) {
  const below = new Map<number, number>();
  return series.map(({ name, tone, points }) => (
    <g key={name} data-tone={tone} data-series={name}>
      {points.map(({ at, value }) => {
        if (!value) return null;
        const low = below.get(at) ?? 0;
        below.set(at, low + value);
        const gap = Math.min(1, (x(at + barMs) - x(at)) / 8);
        return (
          <rect
            key={at}
            className={css["bar"]}
            x={x(at) + gap}
            width={Math.max(1, x(at + barMs) - x(at) - 2 * gap)}
            y={y(low + value)}
            height={y(low) - y(low + value)}
          />
        );
      })}
    </g>
  ));
}

/** The instant that is read: the nearest to the pointer, or the one that the arrow keys have come to. */
function useReading(
  { series, from, to, write, writeAt, barMs = 0 }: TimeChartProps,
  width: number,
) {
  const [at, setAt] = useState<number | null>(null);
  const [isAloud, setIsAloud] = useState(false);
  const known = new Set(series.flatMap(({ points }) => points.map((one) => one.at)));
  const all = [...known].sort((one, other) => one - other);
  const handlers = {
    onPointerMove({ clientX, currentTarget }: PointerEvent<HTMLElement>) {
      const { left } = currentTarget.getBoundingClientRect();
      const share = (clientX - left - PAD.left) / Math.max(1, width - PAD.left - PAD.right);
      const aim = from + share * (to - from) - barMs / 2;
      const nearest = all.toSorted((one, other) => Math.abs(one - aim) - Math.abs(other - aim))[0];
      setAt(nearest ?? null);
      setIsAloud(false);
    },
    onPointerLeave: () => setAt(null),
    onBlur: () => setAt(null),
    onKeyDown(event: KeyboardEvent) {
      if (event.key === "Escape") setAt(null);
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      const here = at === null ? all.length - Math.max(0, step) : all.indexOf(at);
      setAt(all[Math.min(all.length - 1, Math.max(0, here + step))] ?? null);
      setIsAloud(true);
    },
  };
  const shown = at !== null && known.has(at) ? at : null;
  const told =
    shown === null || !isAloud
      ? ""
      : [writeAt(shown), ...series.map((one) => toldOf(one, shown, write))].join(", ");
  return { at: shown, told, handlers };
}

function toldOf({ name, points }: TimeSeries, at: number, write: (value: number) => string) {
  const point = points.find((one) => one.at === at);
  if (!point || point.value === null) return "";
  return [name, write(point.value), point.note].filter(Boolean).join(" ");
}
