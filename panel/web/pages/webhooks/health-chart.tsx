import { BarChart } from "@mantine/charts";
import type { EndpointStats } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";

export function HealthChart({ hours }: Pick<EndpointStats, "hours">) {
  const { t } = useText();
  const f = useFormat();
  return (
    <BarChart
      h={240}
      data={hours.map((one) => ({ ...one, hour: f.hour(one.hour) }))}
      dataKey="hour"
      type="stacked"
      series={[
        { name: "succeeded", label: t.webhooks.succeeded, color: "teal.6" },
        { name: "failed", label: t.webhooks.failed, color: "red.6" },
      ]}
      withLegend
      valueFormatter={(value) => f.whole(value)}
      barChartProps={{ accessibilityLayer: false }}
      barProps={{ isAnimationActive: false, maxBarSize: 40 }}
    />
  );
}
