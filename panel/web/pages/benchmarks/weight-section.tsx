import { useQuery } from "@tanstack/react-query";
import { useText } from "#panel/web/i18n/text.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { ExportMenu } from "./export-menu.tsx";
import { weightsQuery } from "./queries.ts";
import { TimesTable } from "./times-table.tsx";

/** Delivery times by weight of the parcel, to one destination or to all of Italy. */
export function WeightSection({ destCap }: { readonly destCap: string }) {
  const { t } = useText();
  const { data = [], error, isLoading } = useQuery(weightsQuery(destCap));
  const title = t.benchmarks.weights;
  return (
    <Section
      title={title}
      lead={destCap === "" ? t.benchmarks.trendItaly : t.benchmarks.trendTo(destCap)}
      aside={<ExportMenu name="weights" query={{ destCap }} label={title} />}
    >
      <ProblemNote error={error} />
      <TimesTable
        label={title}
        byHeader={t.benchmarks.weight}
        isLoading={isLoading}
        rows={data.map(({ weightBand, ...row }) => ({ ...row, by: weightBand }))}
      />
    </Section>
  );
}
