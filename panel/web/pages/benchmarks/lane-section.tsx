/** The couriers of a lane: their medians with intervals, the shares of their days, and all figures as a table. */
import { Badge, Skeleton, Stack, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import type { LaneInsight } from "#analytics/insights.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { ScrollTable } from "#panel/web/parts/scroll-table.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { CourierFiguresHead } from "./courier-figures-head.tsx";
import { ExportMenu } from "./export-menu.tsx";
import { type LaneQuestion, laneQuery } from "./queries.ts";

const LaneChart = lazy(async () => ({
  default: (await import("./lane-chart.tsx")).LaneChart,
}));

export function LaneSection({ question }: { readonly question: LaneQuestion }) {
  const { t } = useText();
  const { data, error } = useQuery(laneQuery(question));
  const title = t.benchmarks.couriersTo(question.destCap, question.originCap);
  return (
    <Section
      title={title}
      lead={t.benchmarks.laneLead}
      aside={<ExportMenu name="lane" query={{ ...question }} label={title} />}
    >
      <ProblemNote error={error} />
      {data?.length === 0 && <Text c="dimmed">{t.benchmarks.noDeliveries}</Text>}
      {data && data.length > 0 && (
        <Stack>
          {data.some(({ leads }) => leads.length > 0) && (
            <Suspense fallback={<Skeleton h={260} />}>
              <LaneChart rows={data} label={title} />
            </Suspense>
          )}
          <LaneTable rows={data} />
        </Stack>
      )}
    </Section>
  );
}

function LaneTable({ rows }: { readonly rows: readonly LaneInsight[] }) {
  const { t } = useText();
  const f = useFormat();
  const head = [
    ...[t.benchmarks.index, t.benchmarks.grain],
    ...[t.benchmarks.deliveries, t.benchmarks.median, t.benchmarks.interval, t.benchmarks.mean],
    ...[t.benchmarks.p90, t.benchmarks.transit, t.benchmarks.trouble],
  ];
  return (
    <ScrollTable label={t.benchmarks.comparison} minWidth={960} narrow="figures">
      <Table.Caption>{t.benchmarks.comparison}</Table.Caption>
      <CourierFiguresHead names={head} />
      <Table.Tbody className="figures">
        {rows.map((row) => (
          <Table.Tr key={row.courier}>
            <Table.Th scope="row" fw={600}>
              {row.courier}{" "}
              {!row.isPublic && <Badge color="gray">{t.benchmarks.smallSample}</Badge>}
            </Table.Th>
            <Table.Td ta="right">
              {row.efficiency && <EfficiencyFigure {...row.efficiency} />}
            </Table.Td>
            <Table.Td ta="right">{t.benchmarks.grains[row.grain]}</Table.Td>
            <Table.Td ta="right">{f.whole(row.deliveries)}</Table.Td>
            <Table.Td ta="right">{f.decimal(row.leadMedian)}</Table.Td>
            <Table.Td ta="right">{f.interval(row.leadMedianInterval)}</Table.Td>
            <Table.Td ta="right">{f.decimal(row.leadMean)}</Table.Td>
            <Table.Td ta="right">{f.decimal(row.leadP90)}</Table.Td>
            <Table.Td ta="right">{f.decimal(row.transitMedian)}</Table.Td>
            <Table.Td ta="right">{f.percent(row.troubleShare)}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </ScrollTable>
  );
}

/** The index, and what it is made of. */
function EfficiencyFigure(scores: NonNullable<LaneInsight["efficiency"]>) {
  const { t } = useText();
  const f = useFormat();
  const { index, speed, consistency, reliability } = scores;
  return (
    <>
      <Text fw={600} inherit>
        {f.decimal(index)}
      </Text>
      <Text size="xs" c="dimmed">
        {t.benchmarks.scores(f.decimal(speed), f.decimal(consistency), f.decimal(reliability))}
      </Text>
    </>
  );
}
