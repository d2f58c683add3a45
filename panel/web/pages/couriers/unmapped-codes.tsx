/** Codes that no catalogue maps, the most parcels first. */
import { Button } from "@mantine/core";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { createColumnHelper } from "@tanstack/react-table";
import { useMemo, useState } from "react";
import type { UnmappedCode } from "#panel/web/api/routes.ts";
import { useFormat } from "#panel/web/i18n/format.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { DataTable } from "#panel/web/parts/data-table.tsx";
import { Instant } from "#panel/web/parts/instant.tsx";
import { ProblemNote } from "#panel/web/parts/page-problem.tsx";
import { Section } from "#panel/web/parts/section.tsx";
import { meQuery } from "#panel/web/queries.ts";
import { MapCode } from "./map-code.tsx";
import { unmappedQuery } from "./queries.ts";
import { SuggestionCell } from "./suggestion.tsx";

/** @param courier of one alone; absent = all */
export function UnmappedCodes({ courier }: { readonly courier?: string }) {
  const { t } = useText();
  const { data, error, isPending } = useQuery(unmappedQuery);
  const [mapped, setMapped] = useState<UnmappedCode | null>(null);
  const rows = useMemo(
    () => (data?.items ?? []).filter((one) => courier === undefined || one.courier === courier),
    [data, courier],
  );
  return (
    <Section title={t.couriers.unmapped} lead={t.couriers.unmappedLead}>
      <ProblemNote error={error} />
      <CodeTable rows={rows} isLoading={isPending} onMap={setMapped} />
      {mapped && (
        <MapCode
          courier={mapped.courier}
          code={mapped.code}
          description={mapped.description}
          suggestion={mapped.suggestion}
          onClose={() => setMapped(null)}
        />
      )}
    </Section>
  );
}

interface CodeTableProps {
  readonly rows: readonly UnmappedCode[];
  readonly isLoading: boolean;
  readonly onMap: (code: UnmappedCode) => void;
}

function CodeTable({ rows, isLoading, onMap }: CodeTableProps) {
  const { t } = useText();
  const f = useFormat();
  const { capabilities } = useSuspenseQuery(meQuery).data;
  const mayMap = capabilities.includes("catalogue:write");
  const columns = useMemo(() => {
    const column = createColumnHelper<UnmappedCode>();
    return [
      column.accessor("courier", { header: t.couriers.courier }),
      column.accessor("code", { header: t.couriers.code }),
      column.accessor("description", { header: t.couriers.description }),
      column.accessor("parcels", {
        header: t.couriers.parcels,
        meta: { align: "right" },
        cell: ({ getValue }) => f.whole(getValue()),
      }),
      column.accessor("suggestion", {
        header: t.couriers.suggestion,
        cell: ({ getValue }) => <SuggestionCell suggestion={getValue()} />,
      }),
      column.accessor("lastSeen", {
        header: t.couriers.lastSeen,
        cell: ({ getValue }) => <Instant at={getValue()} />,
      }),
      column.display({
        id: "map",
        header: "",
        cell: ({ row: { original } }) =>
          mayMap && (
            <Button
              size="compact-xs"
              aria-label={`${t.couriers.map} ${original.code}`}
              onClick={() => onMap(original)}
            >
              {t.couriers.map}
            </Button>
          ),
      }),
    ];
  }, [t, f, mayMap, onMap]);
  return (
    <DataTable
      label={t.couriers.unmapped}
      rows={rows}
      columns={columns}
      idOf={({ courier, code }) => `${courier} ${code}`}
      isLoading={isLoading}
      emptyText={t.couriers.noUnmapped}
      minWidth={900}
    />
  );
}
