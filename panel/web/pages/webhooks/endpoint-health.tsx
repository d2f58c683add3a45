import { Group, SegmentedControl, SimpleGrid, Skeleton, Stack, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import type { EndpointStats } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { ScrollTable } from "#panel/web/parts/scroll-table.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { statsQuery } from "./queries.ts";

const HealthChart = lazy(async () => ({
  default: (await import("./health-chart.tsx")).HealthChart,
}));

const HOURS = { "1h": 1, "24h": 23, "7d": 7 * 24 - 1, "30d": 30 * 24 - 1 } as const;
type Period = keyof typeof HOURS;
const PERIODS = Object.keys(HOURS) as Period[];

/** Attempts of a period by hour, and what stands in the endpoint's queues. */
export function EndpointHealth({ endpointId }: { readonly endpointId: string }) {
  const { t } = useText();
  const f = useFormat();
  const [period, setPeriod] = useState<Period>("24h");
  const { data, error } = useQuery(statsQuery(endpointId, HOURS[period]));
  const figures = data && [
    [t.webhooks.successRate, f.percent(data.total.successRate)],
    ["p50", f.duration(data.total.p50Ms === null ? null : data.total.p50Ms / 1_000)],
    ["p95", f.duration(data.total.p95Ms === null ? null : data.total.p95Ms / 1_000)],
    [t.webhooks.queued, f.whole(data.now.queued)],
    [t.webhooks.waitingRetries, f.whole(data.now.waiting)],
    [t.webhooks.inFlight, f.whole(data.now.inFlight)],
  ];
  return (
    <Section
      title={t.webhooks.health}
      lead={t.webhooks.healthLead}
      aside={
        <SegmentedControl
          size="xs"
          aria-label={t.webhooks.period}
          data={PERIODS.map((value) => ({ value, label: t.webhooks.periods[value] }))}
          value={period}
          onChange={(value) => setPeriod(value as Period)}
        />
      }
    >
      <ProblemNote error={error} />
      <Stack>
        <SimpleGrid cols={{ base: 2, sm: 3 }} spacing="sm">
          {figures?.map(([name, value]) => (
            <Group key={name} gap={6} align="baseline">
              <Text size="sm" c="dimmed">
                {name}
              </Text>
              <Text fw={700} className="figures">
                {value}
              </Text>
            </Group>
          ))}
        </SimpleGrid>
        <Suspense fallback={<Skeleton h={240} />}>{data && <HealthChart stats={data} />}</Suspense>
        {data && data.codes.length > 0 && <CodesTable stats={data} />}
      </Stack>
    </Section>
  );
}

function CodesTable({ stats: { codes, total } }: { readonly stats: EndpointStats }) {
  const { t } = useText();
  const f = useFormat();
  const lasted = (ms: number | null) => f.duration(ms === null ? null : ms / 1_000);
  return (
    <ScrollTable label={t.webhooks.byCode} minWidth={420}>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>{t.webhooks.byCode}</Table.Th>
          <Table.Th ta="right">{t.webhooks.attempts}</Table.Th>
          <Table.Th ta="right">{t.webhooks.share}</Table.Th>
          <Table.Th ta="right">p50</Table.Th>
          <Table.Th ta="right">p95</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {codes.map(({ code, attempts, p50Ms, p95Ms }) => (
          <Table.Tr key={code}>
            <Table.Th scope="row">
              {code === "none" ? t.webhooks.noAnswer : `HTTP ${code}`}
            </Table.Th>
            <Table.Td ta="right">{f.whole(attempts)}</Table.Td>
            <Table.Td ta="right">
              {f.percent(total.attempts === 0 ? null : attempts / total.attempts)}
            </Table.Td>
            <Table.Td ta="right">{lasted(p50Ms)}</Table.Td>
            <Table.Td ta="right">{lasted(p95Ms)}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </ScrollTable>
  );
}
