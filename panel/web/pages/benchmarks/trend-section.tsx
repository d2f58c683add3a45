import { Skeleton, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { ExportMenu } from "./export-menu.tsx";
import { trendQuery } from "./queries.ts";
import { TimesTable } from "./times-table.tsx";

const TrendChart = lazy(async () => ({
  default: (await import("./trend-chart.tsx")).TrendChart,
}));

/** Median days by month, to one destination or to all of Italy. */
export function TrendSection({ destCap }: { readonly destCap: string }) {
  const { t } = useText();
  const f = useFormat();
  const { data, error } = useQuery(trendQuery(destCap));
  return (
    <Section
      title={t.benchmarks.trend}
      lead={destCap === "" ? t.benchmarks.trendItaly : t.benchmarks.trendTo(destCap)}
      aside={<ExportMenu name="trend" query={{ destCap }} label={t.benchmarks.trend} />}
    >
      <ProblemNote error={error} />
      {data?.length === 0 && <Text c="dimmed">{t.benchmarks.noDeliveries}</Text>}
      {data && data.length > 0 && (
        <>
          <Suspense fallback={<Skeleton h={280} />}>
            <TrendChart rows={data} />
          </Suspense>
          <TimesTable
            label={t.benchmarks.trend}
            byHeader={t.benchmarks.month}
            rows={data.map(({ month, isComplete, ...row }) => {
              const name = f.month(`${month}T12:00:00Z`);
              return { ...row, by: isComplete ? name : t.benchmarks.incompleteMonth(name) };
            })}
          />
        </>
      )}
    </Section>
  );
}
