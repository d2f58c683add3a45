/** The charts of the overview: a chunk of its own, which the first route does not wait for. */
import { AreaChart, BarChart } from "@mantine/charts";
import type { Overview } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import type { Reading } from "./use-overview.ts";

export function RateChart({ history }: { readonly history: readonly Reading[] }) {
  const { t } = useText();
  const f = useFormat();
  return (
    <AreaChart
      h={220}
      data={history.map((one) => ({
        ...one,
        at: f
          .second(one.at)
          .split(/, |\s(?=\d{2}:)/)
          .at(-1),
      }))}
      dataKey="at"
      series={[
        { name: "accepted", label: t.overview.accepted, color: "indigo.6" },
        { name: "applied", label: t.overview.applied, color: "teal.6" },
      ]}
      curveType="monotone"
      withDots={false}
      withLegend
      strokeWidth={2}
      fillOpacity={0.15}
      valueFormatter={(value) => f.decimal(value)}
      areaChartProps={{ accessibilityLayer: false }}
      areaProps={{ isAnimationActive: false }}
    />
  );
}

export function OutcomeChart({ ledger }: Pick<Overview, "ledger">) {
  const { t } = useText();
  const f = useFormat();
  const { accepted, duplicate, unknown, invalid } = t.overview.outcome;
  return (
    <BarChart
      h={220}
      data={ledger.couriers}
      dataKey="courier"
      type="stacked"
      series={[
        { name: "accepted", label: accepted, color: "teal.6" },
        { name: "duplicate", label: duplicate, color: "gray.5" },
        { name: "unknown", label: unknown, color: "yellow.6" },
        { name: "invalid", label: invalid, color: "red.6" },
      ]}
      withLegend
      valueFormatter={(value) => f.compact(value)}
      barChartProps={{ accessibilityLayer: false }}
      barProps={{ isAnimationActive: false, maxBarSize: 56 }}
    />
  );
}
