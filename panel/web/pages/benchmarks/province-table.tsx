import { createColumnHelper } from "@tanstack/react-table";
import { useMemo } from "react";
import type { ProvinceInsight } from "#analytics/insights.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { DataTable } from "#panel/web/parts/data-table.tsx";

interface ProvinceTableProps {
  readonly provinces: readonly ProvinceInsight[];
  readonly isLoading: boolean;
}

export function ProvinceTable({ provinces, isLoading }: ProvinceTableProps) {
  const { t } = useText();
  const f = useFormat();
  const columns = useMemo(() => {
    const column = createColumnHelper<ProvinceInsight>();
    const right = { align: "right" } as const;
    return [
      column.accessor("prefix", { header: "CAP", cell: ({ getValue }) => `${getValue()}…` }),
      column.accessor("provinces", { header: t.benchmarks.provinces }),
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
      column.accessor("troubleShare", {
        header: t.benchmarks.trouble,
        meta: right,
        cell: ({ getValue }) => f.percent(getValue()),
      }),
    ];
  }, [t, f]);
  return (
    <DataTable
      label={t.benchmarks.destinations}
      rows={provinces}
      isLoading={isLoading}
      columns={columns}
      idOf={({ prefix }) => prefix}
      minWidth={600}
      narrow="figures"
    />
  );
}
