/** How long couriers take to report what happened, day by day. */
import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { parseRomeDateTime } from "#core/platform/time/rome-time.ts";
import { type TimeSeries, toneOf } from "#panel/web/charts/series.ts";
import { TimeChart } from "#panel/web/charts/time-chart.tsx";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { type CourierDelay, courierDelaysQuery } from "#panel/web/picture-queries.ts";

const DAY_MS = 86_400_000;
/** A day has 25 hours in autumn. */
const NEXT_DAY_MS = DAY_MS + 3_600_000;
const MINUTE_SECONDS = 60;

/** @param courier of one alone; absent = all */
export function DelaySection({ courier }: { readonly courier?: string }) {
  const { t } = useText();
  const f = useFormat();
  const { data, error } = useQuery(courierDelaysQuery);
  const rows = (data?.items ?? []).filter(
    (row) => courier === undefined || row.courier === courier,
  );
  const couriers = [...new Set(rows.map((row) => row.courier))];
  const days = rows.map(beginOf);
  const last = Math.max(...days);
  const series = couriers.map(
    (name): TimeSeries => ({
      name,
      tone: toneOf(name, couriers),
      points: rows
        .filter((row) => row.courier === name)
        .map((row) => ({
          at: beginOf(row),
          value: row.p50 / MINUTE_SECONDS,
          note: t.benchmarks.delayNote(f.whole(row.events), f.duration(row.p95)),
          isPartial: beginOf(row) + DAY_MS > Date.now(),
        })),
    }),
  );
  return (
    <Section title={t.benchmarks.delays} lead={t.benchmarks.delaysLead}>
      <ProblemNote error={error} />
      {data && rows.length === 0 && <Text c="dimmed">{t.benchmarks.noEvents}</Text>}
      {rows.length > 0 && (
        <TimeChart
          label={t.benchmarks.delays}
          series={series}
          from={Math.min(last - 7 * DAY_MS, ...days)}
          to={last + DAY_MS / 2}
          unit={t.benchmarks.delayUnit}
          write={f.decimal}
          writeAt={f.date}
          gapMs={NEXT_DAY_MS}
          height={240}
        />
      )}
    </Section>
  );
}

function beginOf({ day }: CourierDelay): number {
  return parseRomeDateTime(`${day} 00:00:00`) ?? Date.parse(day);
}
