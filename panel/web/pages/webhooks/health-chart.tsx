import type { EndpointStats } from "#panel/web/api/routes.ts";
import { TimeChart } from "#panel/web/charts/time-chart.tsx";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";

const HOUR_MS = 3_600_000;

export function HealthChart({ stats }: { readonly stats: EndpointStats }) {
  const { t } = useText();
  const f = useFormat();
  const { from, to, hours } = stats;
  const pointsOf = (name: "succeeded" | "failed") =>
    hours.map((one) => ({ at: Date.parse(one.hour), value: one[name] }));
  return (
    <TimeChart
      label={t.webhooks.health}
      series={[
        { name: t.webhooks.succeeded, tone: "teal", points: pointsOf("succeeded") },
        { name: t.webhooks.failed, tone: "red", points: pointsOf("failed") },
      ]}
      from={Date.parse(from)}
      to={Date.parse(to)}
      unit={t.webhooks.attemptsAnHour}
      write={f.compact}
      writeAt={f.minute}
      gapMs={HOUR_MS}
      barMs={HOUR_MS}
      height={240}
    />
  );
}
