/** Delivery times of couriers by month or by weight: each with its sample and the interval of its median. */
import { createColumnHelper } from "@tanstack/react-table";
import { useMemo } from "react";
import type { TrendInsight } from "#analytics/insights.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { DataTable } from "#panel/web/parts/data-table.tsx";

/** A month or a weight band, as a person reads it. */
export interface TimesRow extends Omit<TrendInsight, "month" | "isComplete"> {
  readonly by: string;
}

interface TimesTableProps {
  readonly label: string;
  readonly byHeader: string;
  readonly rows: readonly TimesRow[];
  readonly isLoading?: boolean;
}

export function TimesTable({ label, byHeader, rows, isLoading = false }: TimesTableProps) {
  const { t } = useText();
  const f = useFormat();
  const columns = useMemo(() => {
    const column = createColumnHelper<TimesRow>();
    const right = { align: "right" } as const;
    return [
      column.accessor("courier", { header: t.benchmarks.courier }),
      column.accessor("by", { header: byHeader }),
      column.accessor("deliveries", {
        header: t.benchmarks.deliveries,
        meta: right,
        cell: ({ getValue }) => f.whole(getValue()),
      }),
      column.accessor("leadMedian", {
        header: t.benchmarks.median,
        meta: right,
        cell: ({ getValue }) => f.decimal(getValue()),
      }),
      column.accessor("leadMedianInterval", {
        header: t.benchmarks.interval,
        meta: right,
        cell: ({ getValue }) => f.interval(getValue()),
      }),
      column.accessor("leadMean", {
        header: t.benchmarks.mean,
        meta: right,
        cell: ({ getValue }) => f.decimal(getValue()),
      }),
    ];
  }, [t, f, byHeader]);
  return (
    <DataTable
      label={label}
      rows={rows}
      isLoading={isLoading}
      columns={columns}
      idOf={({ courier, by }) => `${courier} ${by}`}
      minWidth={620}
      narrow="figures"
    />
  );
}
