import { Group, SimpleGrid, Skeleton, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { statsQuery } from "./queries.ts";

const HealthChart = lazy(async () => ({
  default: (await import("./health-chart.tsx")).HealthChart,
}));

/** Attempts of the last day by hour, and what stands in the endpoint's queues. */
export function EndpointHealth({ endpointId }: { readonly endpointId: string }) {
  const { t } = useText();
  const f = useFormat();
  const { data, error } = useQuery(statsQuery(endpointId));
  const figures = data && [
    [t.webhooks.successRate, f.percent(data.total.successRate)],
    ["p50", f.duration(data.total.p50Ms === null ? null : data.total.p50Ms / 1_000)],
    ["p95", f.duration(data.total.p95Ms === null ? null : data.total.p95Ms / 1_000)],
    [t.webhooks.queued, f.whole(data.now.queued)],
    [t.webhooks.waitingRetries, f.whole(data.now.waiting)],
    [t.webhooks.inFlight, f.whole(data.now.inFlight)],
  ];
  return (
    <Section title={t.webhooks.health} lead={t.webhooks.healthLead}>
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
      </Stack>
    </Section>
  );
}
