/** Delivery times: a lane in full, months, regions, and how couriers report. What was asked stands in the address. */
import { Group, Select, SimpleGrid, Stack } from "@mantine/core";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useText } from "#panel/web/i18n/text.tsx";
import { PageHead } from "#panel/web/parts/page-head.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { meQuery } from "#panel/web/queries.ts";
import { ExportMenu } from "./export-menu.tsx";
import { ItalyMap } from "./italy-map.tsx";
import { LaneForm } from "./lane-form.tsx";
import { LaneSection } from "./lane-section.tsx";
import { ProvinceTable } from "./province-table.tsx";
import { QualitySection } from "./quality-section.tsx";
import { provincesQuery, trendQuery } from "./queries.ts";
import { TrendSection } from "./trend-section.tsx";
import { WeightSection } from "./weight-section.tsx";

export interface BenchmarkSearch {
  readonly destCap?: string;
  readonly originCap?: string;
  readonly weightKg?: string;
  readonly courier?: string;
}

export function BenchmarksPage() {
  const { t } = useText();
  const { capabilities } = useSuspenseQuery(meQuery).data;
  const search: BenchmarkSearch = useSearch({ strict: false });
  const { destCap = "", originCap = "", weightKg = "", courier = "" } = search;
  const navigate = useNavigate();
  const ask = (asked: BenchmarkSearch) =>
    void navigate({ to: "/benchmarks", search: { ...search, ...asked } });
  return (
    <>
      <PageHead title={t.benchmarks.title} lead={t.benchmarks.lead} />
      <Stack gap="lg">
        <LaneForm
          key={JSON.stringify(search)}
          initial={{ destCap, originCap, weightKg }}
          onAsk={ask}
        />
        {destCap !== "" && <LaneSection question={{ destCap, originCap, weightKg }} />}
        <TrendSection destCap={destCap} />
        <WeightSection destCap={destCap} />
        <Destinations courier={courier} onCourier={(one) => ask({ courier: one })} />
        {capabilities.includes("quality:read") && <QualitySection />}
      </Stack>
    </>
  );
}

interface DestinationsProps {
  readonly courier: string;
  readonly onCourier: (courier: string) => void;
}

/** Italy by region, and by province beside it. */
function Destinations({ courier, onCourier }: DestinationsProps) {
  const { t } = useText();
  const { data: provinces = [], error, isPending } = useQuery(provincesQuery(courier));
  const { data: trend = [] } = useQuery(trendQuery(""));
  const couriers = [...new Set(trend.map((row) => row.courier))];
  return (
    <Section
      title={t.benchmarks.destinations}
      lead={t.benchmarks.destinationsLead}
      aside={
        <Group gap="xs">
          <Select
            aria-label={t.benchmarks.courier}
            data={[{ value: "", label: t.benchmarks.allCouriers }, ...couriers]}
            value={courier}
            onChange={(value) => onCourier(value ?? "")}
            allowDeselect={false}
            size="xs"
          />
          <ExportMenu name="provinces" query={{ courier }} label={t.benchmarks.destinations} />
        </Group>
      }
    >
      <ProblemNote error={error} />
      <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="lg">
        <ItalyMap provinces={provinces} />
        <ProvinceTable provinces={provinces} isLoading={isPending} />
      </SimpleGrid>
    </Section>
  );
}
