/** Rows of an answer as a file: CSV (RFC 4180) or Parquet. The columns are those of the rows' schema. */
import type { TSchema } from "@sinclair/typebox";
import { parquetWriteBuffer } from "hyparquet-writer";
import { type Cell, csvText } from "./csv-text.ts";

export const TABLE_FORMATS = ["csv", "parquet"] as const;
export type TableFormat = (typeof TABLE_FORMATS)[number];

interface Column {
  /** Such as `leadMedianInterval.low`. */
  readonly name: string;
  readonly path: readonly string[];
  readonly type: "STRING" | "DOUBLE" | "BOOLEAN";
}

const CONTENT_TYPES = {
  csv: "text/csv; charset=utf-8",
  parquet: "application/vnd.apache.parquet",
} as const;

/**
 * @param name of the file, without its ending
 * @param schema of a row; lists in it are left out
 */
export function tableFile(
  name: string,
  schema: TSchema,
  rows: readonly object[],
  format: TableFormat,
): Response {
  const columns = columnsOf(schema);
  const content = format === "csv" ? csvOf(columns, rows) : parquetOf(columns, rows);
  return new Response(content, {
    headers: {
      "content-type": CONTENT_TYPES[format],
      "content-disposition": `attachment; filename="${name}.${format}"`,
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
    },
  });
}

function columnsOf(schema: TSchema, path: readonly string[] = []): Column[] {
  const members: Readonly<Record<string, TSchema>> = schema["properties"] ?? {};
  return Object.entries(members).flatMap(([name, member]): Column[] => {
    const own = [...path, name];
    const forms: readonly TSchema[] = member["anyOf"] ?? [member];
    const form = forms.find(({ type }) => type !== "null");
    if (form === undefined || form["type"] === "array") return [];
    if (form["type"] === "object") return columnsOf(form, own);
    return [{ name: own.join("."), path: own, type: parquetType(form["type"]) }];
  });
}

function parquetType(type: unknown): Column["type"] {
  if (type === "boolean") return "BOOLEAN";
  return type === "string" ? "STRING" : "DOUBLE";
}

/** Null where an object on the way is. */
function cellOf(row: object, path: readonly string[]): Cell {
  const found = path.reduce<unknown>(
    (at, name) => (at as Readonly<Record<string, unknown>> | null)?.[name],
    row,
  );
  return (found as Cell | undefined) ?? null;
}

function csvOf(columns: readonly Column[], rows: readonly object[]): string {
  const head = columns.map(({ name }) => name);
  return csvText([head, ...rows.map((row) => columns.map(({ path }) => cellOf(row, path)))]);
}

function parquetOf(columns: readonly Column[], rows: readonly object[]): ArrayBuffer {
  const columnData = columns.map(({ name, path, type }) => ({
    name,
    type,
    nullable: true,
    data: rows.map((row) => cellOf(row, path)),
  }));
  return parquetWriteBuffer({ columnData });
}
