/** How couriers report: delays, order, duplicates, refusals, and whether one has gone silent. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useText } from "#panel/web/i18n/text.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { useMay } from "#panel/web/parts/use-may.ts";
import { AheadEvents } from "./ahead-events.tsx";
import { BrokenRules } from "./broken-rules.tsx";
import { DelaySection } from "./delay-section.tsx";
import { QualityPeriod } from "./quality-period.tsx";
import { QualityTable } from "./quality-table.tsx";
import { qualityQuery, silenceQuery } from "./queries.ts";

/** @param courier of one alone; absent = all */
export function QualitySection({ courier }: { readonly courier?: string }) {
  const { t } = useText();
  const mayOpen = useMay("events:read");
  const [days, setDays] = useState("7");
  const { data = [], error } = useQuery(qualityQuery(Number(days)));
  const { data: silence = [] } = useQuery(silenceQuery);
  const rows = data.filter((row) => courier === undefined || row.courier === courier);
  return (
    <>
      <Section
        title={t.benchmarks.quality}
        lead={t.benchmarks.qualityLead}
        aside={<QualityPeriod days={days} onDays={setDays} />}
      >
        <ProblemNote error={error} />
        <QualityTable rows={rows} silence={silence} isLinked={mayOpen} />
      </Section>
      <DelaySection {...(courier !== undefined && { courier })} />
      {courier !== undefined && rows[0] && <AheadEvents {...rows[0]} />}
      {courier !== undefined && <BrokenRules rules={rows[0]?.brokenRules ?? []} />}
    </>
  );
}
