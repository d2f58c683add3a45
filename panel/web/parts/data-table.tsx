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
import { memo, useEffect, useMemo, useRef } from "react";
import { useText } from "#panel/web/i18n/text.tsx";
import css from "./data-table.module.css";
import { minWidthOf, type NarrowForm, narrowClass, RIGHT, useHeads } from "./narrow-table.ts";

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
  readonly narrow?: NarrowForm;
  readonly isLoading?: boolean;
  readonly emptyText?: string;
  readonly onEnd?: () => void;
}

export function DataTable<T>(props: DataTableProps<T>) {
  const { label, rows, columns, idOf, minWidth = 640, isLoading = false, onEnd } = props;
  const { narrow = "cards" } = props;
  const { t } = useText();
  const scroller = useRef<HTMLDivElement>(null);
  const head = useRef<HTMLTableElement>(null);
  useHeads(head);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: OVERSCAN,
  });
  const shown = virtual.getVirtualItems();
  const first = shown[0]?.index ?? 0;
  const last = shown.at(-1)?.index ?? -1;
  useEffect(() => {
    if (rows.length > 0 && last >= rows.length - ASK_AHEAD) onEnd?.();
  }, [last, rows.length, onEnd]);
  const inSight = useMemo(() => rows.slice(first, last + 1), [rows, first, last]);
  const table = useReactTable({
    // Of all rows it would make a model for each with every page that comes.
    data: inSight,
    columns: columns as ColumnDef<T>[],
    getRowId: idOf,
    getCoreRowModel: getCoreRowModel(),
    autoResetAll: false,
  });
  const models = table.getRowModel().rows;
  const before = shown[0]?.start ?? 0;
  const after = virtual.getTotalSize() - (shown.at(-1)?.end ?? 0);
  return (
    <section
      ref={scroller}
      className={`${css["scroller"]} ${narrowClass(narrow)}`}
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
      tabIndex={0}
    >
      <Table
        ref={head}
        stickyHeader
        miw={minWidthOf(narrow, minWidth)}
        highlightOnHover
        aria-rowcount={rows.length + 1}
      >
        <Table.Thead className={css["head"] ?? ""}>
          {table.getHeaderGroups().map(({ id, headers }) => (
            <Table.Tr key={id}>
              {headers.map(({ id: key, column, getContext }) => (
                <Table.Th key={key} {...alignment(column.columnDef)}>
                  {flexRender(column.columnDef.header, getContext())}
                </Table.Th>
              ))}
            </Table.Tr>
          ))}
        </Table.Thead>
        <Table.Tbody className="figures">
          <Spacer height={before} />
          {models.map((row, at) => (
            <DataRow
              key={row.id}
              row={row}
              index={first + at}
              columns={columns}
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
  readonly row: Row<T>;
  readonly index: number;
  readonly columns: unknown;
  readonly measure: (element: HTMLTableRowElement | null) => void;
}

function RowInSight<T>({ row, index, measure }: DataRowProps<T>) {
  return (
    <Table.Tr ref={measure} data-index={index} aria-rowindex={index + 2}>
      {row.getVisibleCells().map(({ id, column, getContext }) => (
        <Table.Td key={id} {...alignment(column.columnDef)}>
          {flexRender(column.columnDef.cell, getContext())}
        </Table.Td>
      ))}
    </Table.Tr>
  );
}

function alignment({ meta }: { readonly meta?: { readonly align?: "right" } }) {
  return meta?.align === "right" ? { className: RIGHT } : {};
}

/** Scrolling draws only the rows that come into sight: the model of a row is new each time, what it shows is not. */
const DataRow = memo(
  RowInSight,
  (one, other) =>
    one.row.original === other.row.original &&
    one.index === other.index &&
    one.columns === other.columns,
) as typeof RowInSight;

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
