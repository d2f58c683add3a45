/** How couriers report: delays, order, duplicates, refusals, and whether one has gone silent. */
import { Badge, SegmentedControl, Table } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { CarrierQuality, Silence } from "#analytics/insights.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { ScrollTable } from "#panel/web/parts/scroll-table.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { CourierFiguresHead } from "./courier-figures-head.tsx";
import { qualityQuery, silenceQuery } from "./queries.ts";

const PERIODS = [1, 7, 30, 90] as const;

/** @param courier of one alone; absent = all */
export function QualitySection({ courier }: { readonly courier?: string }) {
  const { t } = useText();
  const [days, setDays] = useState("7");
  const { data = [], error } = useQuery(qualityQuery(Number(days)));
  const { data: silence = [] } = useQuery(silenceQuery);
  const rows = data.filter((row) => courier === undefined || row.courier === courier);
  return (
    <Section
      title={t.benchmarks.quality}
      lead={t.benchmarks.qualityLead}
      aside={
        <SegmentedControl
          aria-label={t.benchmarks.period}
          size="xs"
          value={days}
          onChange={setDays}
          data={PERIODS.map((one) => ({ value: String(one), label: t.benchmarks.lastDays(one) }))}
        />
      }
    >
      <ProblemNote error={error} />
      <QualityTable rows={rows} silence={silence} />
    </Section>
  );
}

interface QualityTableProps {
  readonly rows: readonly CarrierQuality[];
  readonly silence: ReadonlyArray<Omit<Silence, "lastHourMs">>;
}

function QualityTable({ rows, silence }: QualityTableProps) {
  const { t } = useText();
  const f = useFormat();
  const heard = new Map(silence.map((row) => [row.courier, row]));
  const head = [
    ...[
      t.benchmarks.received,
      t.benchmarks.delayP50,
      t.benchmarks.delayP95,
      t.benchmarks.outOfOrder,
    ],
    ...[
      t.benchmarks.duplicates,
      t.benchmarks.invalid,
      t.benchmarks.unmapped,
      t.benchmarks.lastHours,
    ],
  ];
  return (
    <ScrollTable label={t.benchmarks.quality} minWidth={860}>
      <CourierFiguresHead names={head} />
      <Table.Tbody className="figures">
        {rows.map((row) => (
          <Table.Tr key={row.courier}>
            <Table.Th scope="row" fw={600}>
              {row.courier}
            </Table.Th>
            <Table.Td ta="right">{f.whole(row.received)}</Table.Td>
            <Table.Td ta="right">{f.duration(row.delayP50)}</Table.Td>
            <Table.Td ta="right">{f.duration(row.delayP95)}</Table.Td>
            <Table.Td ta="right">{f.percent(row.outOfOrderShare)}</Table.Td>
            <Table.Td ta="right">{f.percent(row.duplicateShare)}</Table.Td>
            <Table.Td ta="right">{f.percent(row.invalidShare)}</Table.Td>
            <Table.Td ta="right">{f.percent(row.unmappedShare)}</Table.Td>
            <Table.Td ta="right">
              <HeardBadge row={heard.get(row.courier)} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </ScrollTable>
  );
}

function HeardBadge({ row }: { readonly row: Omit<Silence, "lastHourMs"> | undefined }) {
  const { t } = useText();
  const f = useFormat();
  if (!row || row.weeks === 0) return <>{t.benchmarks.tooEarly}</>;
  const figures = t.benchmarks.ofUsual(f.whole(row.seen), f.whole(Math.round(row.expected)));
  return <Badge color={row.silent ? "red" : "teal"}>{figures}</Badge>;
}
