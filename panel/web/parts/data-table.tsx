/** A long list as a table: only the rows in sight are in the page, and the next ones are asked for before the end comes. */
import { Center, Loader, Table, Text } from "@mantine/core";
import {
  type ColumnDef,
  flexRender,
  getCoreRowModel,
  type Row,
  type RowData,
  useReactTable,
} from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef } from "react";
import { useText } from "#panel/web/i18n/text.tsx";
import css from "./data-table.module.css";

declare module "@tanstack/react-table" {
  interface ColumnMeta<TData extends RowData, TValue> {
    readonly align?: "right";
  }
}

const ROW_HEIGHT = 44;
const OVERSCAN = 12;
/** Rows from the end at which the next page is asked for. */
const ASK_AHEAD = 20;

interface DataTableProps<T> {
  readonly label: string;
  readonly rows: readonly T[];
  // biome-ignore lint/suspicious/noExplicitAny: columns of one table have values of different types
  readonly columns: ReadonlyArray<ColumnDef<T, any>>;
  readonly idOf: (row: T) => string;
  readonly minWidth?: number;
  readonly isLoading?: boolean;
  readonly emptyText?: string;
  readonly onEnd?: () => void;
}

export function DataTable<T>(props: DataTableProps<T>) {
  const { label, rows, columns, idOf, minWidth = 640, isLoading = false, onEnd } = props;
  const { t } = useText();
  const scroller = useRef<HTMLDivElement>(null);
  const table = useReactTable({
    data: rows as T[],
    columns: columns as ColumnDef<T>[],
    getRowId: idOf,
    getCoreRowModel: getCoreRowModel(),
  });
  const all = table.getRowModel().rows;
  const virtual = useVirtualizer({
    count: all.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: OVERSCAN,
  });
  const shown = virtual.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (all.length > 0 && last >= all.length - ASK_AHEAD) onEnd?.();
  }, [last, all.length, onEnd]);
  const before = shown[0]?.start ?? 0;
  const after = virtual.getTotalSize() - (shown.at(-1)?.end ?? 0);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section ref={scroller} className={css["scroller"]} aria-label={label} tabIndex={0}>
      <Table stickyHeader miw={minWidth} highlightOnHover aria-rowcount={all.length + 1}>
        <Table.Thead className={css["head"] ?? ""}>
          {table.getHeaderGroups().map(({ id, headers }) => (
            <Table.Tr key={id}>
              {headers.map(({ id: key, column, getContext }) => (
                <Table.Th key={key} ta={column.columnDef.meta?.align ?? "left"}>
                  {flexRender(column.columnDef.header, getContext())}
                </Table.Th>
              ))}
            </Table.Tr>
          ))}
        </Table.Thead>
        <Table.Tbody className="figures">
          <Spacer height={before} />
          {shown.map(({ index }) => (
            <DataRow
              key={all[index]?.id}
              row={all[index]}
              index={index}
              measure={virtual.measureElement}
            />
          ))}
          <Spacer height={after} />
        </Table.Tbody>
      </Table>
      <TableEnd
        isLoading={isLoading}
        isEmpty={rows.length === 0}
        text={props.emptyText ?? t.common.empty}
      />
    </section>
  );
}

interface DataRowProps<T> {
  readonly row: Row<T> | undefined;
  readonly index: number;
  readonly measure: (element: HTMLTableRowElement | null) => void;
}

function DataRow<T>({ row, index, measure }: DataRowProps<T>) {
  return (
    <Table.Tr ref={measure} data-index={index} aria-rowindex={index + 2}>
      {row?.getVisibleCells().map(({ id, column, getContext }) => (
        <Table.Td key={id} ta={column.columnDef.meta?.align ?? "left"}>
          {flexRender(column.columnDef.cell, getContext())}
        </Table.Td>
      ))}
    </Table.Tr>
  );
}

/** In the place of the rows that are not in the page. */
function Spacer({ height }: { readonly height: number }) {
  if (height <= 0) return null;
  return (
    <tr aria-hidden>
      <td className={css["spacer"]} style={{ height }} />
    </tr>
  );
}

interface TableEndProps {
  readonly isLoading: boolean;
  readonly isEmpty: boolean;
  readonly text: string;
}

function TableEnd({ isLoading, isEmpty, text }: TableEndProps) {
  if (isLoading) {
    return (
      <Center p="md">
        <Loader size="sm" aria-hidden />
      </Center>
    );
  }
  if (!isEmpty) return null;
  return (
    <Text c="dimmed" ta="center" p="xl">
      {text}
    </Text>
  );
}
