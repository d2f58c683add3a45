import { Skeleton, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { useText } from "#panel/web/i18n/text.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { trendQuery } from "./queries.ts";

const TrendChart = lazy(async () => ({
  default: (await import("./benchmark-charts.tsx")).TrendChart,
}));

/** Mean days by month, to one destination or to all of Italy. */
export function TrendSection({ destCap }: { readonly destCap: string }) {
  const { t } = useText();
  const { data, error } = useQuery(trendQuery(destCap));
  return (
    <Section
      title={t.benchmarks.trend}
      lead={destCap === "" ? t.benchmarks.trendItaly : t.benchmarks.trendTo(destCap)}
    >
      <ProblemNote error={error} />
      {data?.length === 0 && <Text c="dimmed">{t.benchmarks.noDeliveries}</Text>}
      {data && data.length > 0 && (
        <Suspense fallback={<Skeleton h={280} />}>
          <TrendChart rows={data} />
        </Suspense>
      )}
    </Section>
  );
}
