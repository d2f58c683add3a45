import { BarChart } from "@mantine/charts";
import type { EndpointStats } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";

const HOUR_MS = 3_600_000;

export function HealthChart({ stats }: { readonly stats: EndpointStats }) {
  const { t } = useText();
  const f = useFormat();
  return (
    <BarChart
      h={240}
      data={everyHour(stats).map((one) => ({ ...one, hour: f.hour(one.hour) }))}
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

/** An hour without an attempt has its place on the axis too. */
function everyHour({ from, to, hours }: EndpointStats) {
  const known = new Map(hours.map((one) => [Date.parse(one.hour), one]));
  const shown = [];
  for (let at = Date.parse(from); at <= Date.parse(to); at += HOUR_MS) {
    const { succeeded = 0, failed = 0 } = known.get(at) ?? {};
    shown.push({ hour: new Date(at).toISOString(), succeeded, failed });
  }
  return shown;
}
