import { createColumnHelper } from "@tanstack/react-table";
import { useMemo } from "react";
import { useText } from "#panel/web/i18n/text.tsx";
import { DataTable } from "#panel/web/parts/data-table.tsx";

/** ClickHouse's JSON format. */
export interface SqlRows {
  readonly meta: ReadonlyArray<{ readonly name: string; readonly type: string }>;
  readonly data: ReadonlyArray<Readonly<Record<string, unknown>>>;
  readonly rows: number;
  readonly statistics: { readonly elapsed: number };
}

interface Numbered {
  readonly at: number;
  readonly row: Readonly<Record<string, unknown>>;
}

const COLUMN_WIDTH = 140;
const NUMBER = /^(U?Int|Float|Decimal|Nullable\((U?Int|Float|Decimal))/;

export function SqlResult({ answer: { meta, data } }: { readonly answer: SqlRows }) {
  const { t } = useText();
  const rows = useMemo(() => data.map((row, at): Numbered => ({ at, row })), [data]);
  const columns = useMemo(() => {
    const column = createColumnHelper<Numbered>();
    return meta.map(({ name, type }) =>
      column.accessor(({ row }) => row[name], {
        id: name,
        header: name,
        meta: NUMBER.test(type) ? { align: "right" } : {},
        cell: ({ getValue }) => textOf(getValue()),
      }),
    );
  }, [meta]);
  return (
    <DataTable
      label={t.sql.result}
      rows={rows}
      columns={columns}
      idOf={({ at }) => String(at)}
      minWidth={COLUMN_WIDTH * meta.length}
      narrow="figures"
    />
  );
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return "–";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
