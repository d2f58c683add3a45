/** Median days by month: each courier's line stops where a month has no figure that may be shown. */
import type { TrendInsight } from "#analytics/insights.ts";
import { parseRomeDateTime } from "#core/platform/time/rome-time.ts";
import { type TimeSeries, toneOf } from "#panel/web/charts/series.ts";
import { TimeChart } from "#panel/web/charts/time-chart.tsx";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";

const DAY_MS = 86_400_000;
/** From the begin of a month to that of the next one, and no farther. */
const NEXT_MONTH_MS = 32 * DAY_MS;
/** At either end, so that a single month has an axis. */
const MARGIN_MS = 10 * DAY_MS;

export function TrendChart({ rows }: { readonly rows: readonly TrendInsight[] }) {
  const { t } = useText();
  const f = useFormat();
  const couriers = [...new Set(rows.map(({ courier }) => courier))].sort();
  const series = couriers.map(
    (courier): TimeSeries => ({
      name: courier,
      tone: toneOf(courier, couriers),
      points: rows
        .filter((row) => row.courier === courier)
        .map((row) => ({
          at: beginOf(row),
          value: row.leadMedian,
          note: t.benchmarks.sample(f.whole(row.deliveries), f.interval(row.leadMedianInterval)),
          isPartial: !row.isComplete,
        })),
    }),
  );
  const begins = rows.map(beginOf);
  return (
    <TimeChart
      label={t.benchmarks.trend}
      series={series}
      from={Math.min(...begins) - MARGIN_MS}
      to={Math.max(...begins) + MARGIN_MS}
      unit={t.benchmarks.medianDays}
      write={f.decimal}
      writeAt={f.month}
      gapMs={NEXT_MONTH_MS}
      height={280}
    />
  );
}

function beginOf({ month }: TrendInsight): number {
  return parseRomeDateTime(`${month} 00:00:00`) ?? Date.parse(month);
}
