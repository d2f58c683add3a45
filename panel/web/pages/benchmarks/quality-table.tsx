/** The figures of how couriers report, one row for each. */
import { Badge, Table } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { CourierQuality, Silence } from "#analytics/insights.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { ScrollTable } from "#panel/web/parts/scroll-table.tsx";
import { CourierFiguresHead } from "./courier-figures-head.tsx";

interface QualityTableProps {
  readonly rows: readonly CourierQuality[];
  readonly silence: ReadonlyArray<Omit<Silence, "lastHourMs">>;
  /** Figures lead to the events: of visitors who may see them. */
  readonly isLinked?: boolean;
}

export function QualityTable({ rows, silence, isLinked = false }: QualityTableProps) {
  const { t } = useText();
  const f = useFormat();
  const heard = new Map(silence.map((row) => [row.courier, row]));
  const head = [
    ...[
      t.benchmarks.received,
      t.benchmarks.delayP50,
      t.benchmarks.delayP95,
      t.benchmarks.outOfOrder,
      t.benchmarks.ahead,
    ],
    ...[
      t.benchmarks.duplicates,
      t.benchmarks.invalid,
      t.benchmarks.unknownTracking,
      t.benchmarks.unmapped,
      t.benchmarks.lastHours,
    ],
  ];
  return (
    <ScrollTable label={t.benchmarks.quality} minWidth={1020} narrow="figures">
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
            <Table.Td ta="right">{f.percent(row.aheadShare)}</Table.Td>
            <Table.Td ta="right">
              <Share isLinked={isLinked} courier={row.courier} outcome="DUPLICATE">
                {f.percent(row.duplicateShare)}
              </Share>
            </Table.Td>
            <Table.Td ta="right">
              <Share isLinked={isLinked} courier={row.courier} outcome="INVALID">
                {f.percent(row.invalidShare)}
              </Share>
            </Table.Td>
            <Table.Td ta="right">
              <Share isLinked={isLinked} courier={row.courier} outcome="UNKNOWN_TRACKING">
                {f.percent(row.unknownTrackingShare)}
              </Share>
            </Table.Td>
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

interface ShareProps {
  readonly isLinked: boolean;
  readonly courier: string;
  readonly outcome: string;
  readonly children: string;
}

/** A percentage, and the way to the events that it counts. */
function Share({ isLinked, courier, outcome, children }: ShareProps) {
  if (!isLinked) return <>{children}</>;
  return (
    <Link to="/inbox" search={{ courier, outcome }}>
      {children}
    </Link>
  );
}

function HeardBadge({ row }: { readonly row: Omit<Silence, "lastHourMs"> | undefined }) {
  const { t } = useText();
  const f = useFormat();
  if (!row || row.weeks === 0 || row.expected < 1) return <>{t.benchmarks.tooEarly}</>;
  const figures = t.benchmarks.ofUsual(f.whole(row.seen), f.whole(Math.round(row.expected)));
  return <Badge color={row.silent ? "red" : "teal"}>{figures}</Badge>;
}
