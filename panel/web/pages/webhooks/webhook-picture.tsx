/** How webhooks have fared: attempts and their success, how long answers took, and what came instead of a success. */
import { Group, SegmentedControl, SimpleGrid, Stack, Table, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { TimeChart } from "#panel/web/charts/time-chart.tsx";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { PagePending } from "#panel/web/parts/page-pending.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { ScrollTable } from "#panel/web/parts/scroll-table.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { type WebhookPicture as Picture, webhookPictureQuery } from "#panel/web/picture-queries.ts";

const PERIODS = ["24h", "7d", "30d"] as const;
const MS = 1_000;

export function WebhookPicture() {
  const { t } = useText();
  const [period, setPeriod] = useState<string>(PERIODS[0]);
  const { data, error } = useQuery(webhookPictureQuery(period));
  return (
    <Section
      title={t.webhooks.picture}
      lead={t.webhooks.pictureLead}
      aside={
        <SegmentedControl
          aria-label={t.webhooks.period}
          size="xs"
          value={period}
          onChange={setPeriod}
          data={PERIODS.map((value) => ({ value, label: t.webhooks.periods[value] }))}
        />
      }
    >
      <ProblemNote error={error} />
      {!data && !error && <PagePending />}
      {data?.periods.length === 0 && (
        <Text c="dimmed">{data.isComplete ? t.webhooks.noAttempts : t.app.noAnalytics}</Text>
      )}
      {data && data.periods.length > 0 && (
        <Stack>
          <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="lg">
            <Attempts {...data} />
            <Latency {...data} />
          </SimpleGrid>
          {data.answers.length > 0 && <Answers {...data} />}
        </Stack>
      )}
    </Section>
  );
}

function Attempts({ from, to, stepMs, periods }: Picture) {
  const { t } = useText();
  const f = useFormat();
  return (
    <TimeChart
      label={t.webhooks.attempts}
      series={[
        {
          name: t.webhooks.succeeded,
          tone: "teal",
          points: periods.map(({ begin, succeeded, attempts }) => ({
            at: begin,
            value: succeeded,
            note: f.percent(succeeded / attempts),
          })),
        },
        {
          name: t.webhooks.failed,
          tone: "red",
          points: periods.map(({ begin, succeeded, attempts }) => ({
            at: begin,
            value: attempts - succeeded,
          })),
        },
      ]}
      from={from}
      // The running hour has its whole width.
      to={from + Math.ceil((to - from) / stepMs) * stepMs}
      unit={t.webhooks.attempts}
      write={f.compact}
      writeAt={f.minute}
      gapMs={stepMs}
      barMs={stepMs}
    />
  );
}

function Latency({ from, to, stepMs, periods }: Picture) {
  const { t } = useText();
  const f = useFormat();
  const line = (name: "p50" | "p95") =>
    periods.map((one) => ({
      at: one.begin,
      value: one[name] / MS,
      note: `n = ${f.whole(one.attempts)}`,
      isPartial: one.begin + stepMs > to,
    }));
  return (
    <TimeChart
      label={t.webhooks.latency}
      series={[
        { name: t.webhooks.latencyMedian, tone: "indigo", points: line("p50") },
        { name: t.webhooks.latencyP95, tone: "orange", points: line("p95") },
      ]}
      from={from}
      to={to}
      unit={t.webhooks.latency}
      write={f.duration}
      writeAt={f.minute}
      gapMs={stepMs}
    />
  );
}

function Answers({ answers }: Picture) {
  const { t } = useText();
  const f = useFormat();
  return (
    <div>
      <Group mb={4}>
        <Title order={3} size="h5">
          {t.webhooks.failedAnswers}
        </Title>
      </Group>
      <ScrollTable label={t.webhooks.failedAnswers} minWidth={360} narrow="figures">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t.webhooks.byCode}</Table.Th>
            <Table.Th ta="right">{t.webhooks.attempts}</Table.Th>
            <Table.Th ta="right">{t.webhooks.endpointCount}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody className="figures">
          {answers.map(({ status, error, attempts, endpoints }) => (
            <Table.Tr key={`${status} ${error}`}>
              <Table.Th scope="row">
                {[status === 0 ? t.webhooks.noAnswer : `HTTP ${status}`, error]
                  .filter(Boolean)
                  .join(": ")}
              </Table.Th>
              <Table.Td ta="right">{f.whole(attempts)}</Table.Td>
              <Table.Td ta="right">{f.whole(endpoints)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </ScrollTable>
    </div>
  );
}
