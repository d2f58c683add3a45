/** The days of a lane's deliveries: a chunk of its own. */
import { BarChart } from "@mantine/charts";
import type { LaneInsight } from "#analytics/insights.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";

const COLOURS = [
  "indigo.6",
  "teal.6",
  "orange.6",
  "grape.6",
  "cyan.7",
  "pink.6",
  "lime.7",
  "red.6",
];
/** Longer ones are counted together. */
const LONGEST_DAYS = 10;

function seriesOf(couriers: readonly string[]) {
  return couriers.map((name, at) => ({ name, color: COLOURS[at % COLOURS.length] ?? "gray.6" }));
}

interface LaneChartProps {
  readonly rows: readonly LaneInsight[];
  readonly label: string;
}

/** How many of a courier's deliveries took how many days. */
export function LaneChart({ rows, label }: LaneChartProps) {
  const { t } = useText();
  const f = useFormat();
  const days = Array.from({ length: LONGEST_DAYS + 1 }, (_, at) => at);
  const last = Math.max(
    ...rows.flatMap(({ leads }) => leads.map(([day]) => Math.min(day, LONGEST_DAYS))),
  );
  const data = days.slice(0, Math.max(last, 3) + 1).map((day) => ({
    day: day === LONGEST_DAYS ? `${day}+` : String(day),
    ...Object.fromEntries(rows.map((row) => [row.courier, shareOf(row, day)])),
  }));
  return (
    <figure
      style={{ margin: 0 }}
      aria-label={`${label}: ${rows.map((row) => toldOf(row, f.percent)).join(". ")}`}
    >
      <BarChart
        h={260}
        data={data}
        dataKey="day"
        series={seriesOf(rows.map(({ courier }) => courier).sort())}
        withLegend
        xAxisLabel={t.benchmarks.leadDays}
        yAxisLabel={t.benchmarks.shareOfDeliveries}
        valueFormatter={(value) => f.percent(value)}
        barChartProps={{ accessibilityLayer: false }}
        barProps={{ isAnimationActive: false, maxBarSize: 28 }}
      />
    </figure>
  );
}

function shareOf({ leads, deliveries }: LaneInsight, day: number): number {
  const counted = leads.filter(([one]) => one === day || (day === LONGEST_DAYS && one > day));
  return counted.reduce((sum, [, count]) => sum + count, 0) / deliveries;
}

function toldOf(row: LaneInsight, percent: (value: number) => string): string {
  return `${row.courier} ${row.leads.map(([day]) => `${day}: ${percent(shareOf(row, day))}`).join(", ")}`;
}
