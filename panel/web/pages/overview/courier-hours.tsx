/** When couriers sent events: an hour that is missing in a row of dark ones is one in which somebody was silent. */
import { Anchor, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { HeatTable } from "#panel/web/charts/heat-table.tsx";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { PagePending } from "#panel/web/parts/page-pending.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { courierHoursQuery } from "#panel/web/picture-queries.ts";

const HOUR_MS = 3_600_000;
/** Those with the most events. */
const COURIERS_SHOWN = 20;

export function CourierHours() {
  const { t } = useText();
  const f = useFormat();
  const { data, error } = useQuery(courierHoursQuery);
  const byCourier = [...Map.groupBy(data?.items ?? [], ({ courier }) => courier)]
    .map(([courier, hours]) => ({
      courier,
      known: new Map(hours.map(({ at, events }) => [at, events])),
      total: hours.reduce((sum, { events }) => sum + events, 0),
    }))
    .sort((one, other) => other.total - one.total);
  const columns = data
    ? Array.from({ length: (data.to - data.from) / HOUR_MS }, (_, at) => ({
        key: data.from + at * HOUR_MS,
        name: f.hour(data.from + at * HOUR_MS),
      }))
    : [];
  return (
    <Section title={t.overview.courierHours} lead={t.overview.courierHoursLead}>
      <ProblemNote error={error} />
      {!data && !error && <PagePending />}
      {data && byCourier.length === 0 && (
        <Text c="dimmed">{data.isComplete ? t.overview.noCourierHours : t.app.noAnalytics}</Text>
      )}
      {byCourier.length > 0 && (
        <HeatTable
          label={t.overview.courierHours}
          head={t.benchmarks.courier}
          columns={columns}
          write={f.whole}
          rows={byCourier.slice(0, COURIERS_SHOWN).map(({ courier, known }) => ({
            key: courier,
            name: (
              <Anchor component={Link} to={`/carriers/${courier}`} size="xs">
                {courier}
              </Anchor>
            ),
            values: columns.map(({ key }) => known.get(key) ?? 0),
          }))}
        />
      )}
    </Section>
  );
}
