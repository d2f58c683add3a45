/** CSV files that people upload: their lines by column, and what is wrong in them. Commas, semicolons (as Excel in Italian writes) and tabs separate. */
import { Readable } from "node:stream";
import { Type } from "@sinclair/typebox";
import { CsvError, parse } from "csv-parse";
import { Problem } from "#core/platform/errors/problem.ts";
import { readBody } from "#core/platform/http/body/read-body.ts";
import { nextTurn, turns } from "#core/platform/process/next-turn.ts";
import { type FaultCode, FaultItem } from "#core/platform/schema/fault.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { unguarded } from "./csv-text.ts";

/** Of a catalogue enough for every code with a description of 300 characters. */
export const CSV_FILE_BYTES = limit(
  2 * 1024 * 1024,
  "CSV file that is uploaded to the panel",
  "413",
);
export const CSV_FAULTS_LISTED = limit(
  100,
  "errors listed at once of an uploaded CSV file",
  "the first ones",
);
/** Up to the last one with text in it: no export of a tracking has as many. */
export const CSV_COLUMNS = limit(200, "columns of an uploaded CSV file", "refused whole");
/** Parsed in one go: one-character cells take 1.4 us a byte. */
const SLICE_BYTES = 4_096;

/** What only a file can have wrong, so that the panel says it in the visitor's language. */
export const FILE_FAULTS = [
  ...(["EMPTY_FILE", "TOO_MANY_LINES", "CELLS", "QUOTES"] as const),
  ...(["TOO_MANY_COLUMNS", "REPEATED_COLUMN", "MISSING_COLUMN"] as const),
] as const;
type FileFault = (typeof FILE_FAULTS)[number];

export interface LineFault<Reason extends string> {
  readonly line: number;
  /** Null = the whole line. */
  readonly column: string | null;
  readonly code: FaultCode;
  /** Null = a value is wrong in itself, which the code tells. */
  readonly reason: Reason | null;
  readonly message: string;
}

/** Takes the faults that it names, whatever others it has. */
interface Faults<Reason extends string> {
  readonly length: number;
  readonly push: (fault: LineFault<Reason>) => unknown;
}

/** What a file looks like. */
interface Form<Column extends string, Reason extends string> {
  readonly columns: readonly Column[];
  readonly needed: readonly Column[];
  /** With the head. */
  readonly mostLines: number;
  /** The fault of a column that is none of them; null = it is passed over. */
  readonly unknownColumn: Reason | null;
}

/** A line with text in it, by column; columns that the file does not have are absent. */
export interface FileLine<Column extends string> {
  readonly line: number;
  readonly cells: Readonly<Partial<Record<Column, string>>>;
}

/** Schema of the errors of a file in an answer. @param description what they keep from happening */
export function faultsOfFile<const Reason extends string>(
  reasons: readonly Reason[],
  description: string,
) {
  const names = reasons.map((name) => Type.Literal(name));
  return Type.Array(
    Type.Object({
      line: Type.Integer({ description: "of the file; the head is line 1" }),
      column: Type.Union([Type.String(), Type.Null()], { description: "null = the whole line" }),
      code: Type.Unsafe<FaultCode>(FaultItem.properties.code),
      reason: Type.Unsafe<Reason | null>(
        Type.Union([...names, Type.Null()], {
          description: "null = the value is wrong in itself, as the code tells",
        }),
      ),
      message: Type.String({ description: "for people; it may change" }),
    }),
    { description },
  );
}

export const csvBody = (example: string) => ({
  mediaType: "text/csv",
  schema: Type.String(),
  example,
  limitBytes: CSV_FILE_BYTES,
  read: readCsv,
});

/** @throws {Problem} 400, 408, 413 */
async function readCsv(request: Request): Promise<string> {
  const bytes = await readBody(request, CSV_FILE_BYTES);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    const detail = "The file is not in UTF-8: save it as “CSV UTF-8”.";
    throw new Problem(400, "MALFORMED_BODY", detail);
  }
}

/**
 * In slices, between which the loop turns.
 * @param faults what is wrong is added to it; where the head is, no line is read
 */
export async function linesOf<Column extends string, Reason extends string>(
  text: string,
  form: Form<Column, Reason>,
  faults: Faults<Reason | FileFault>,
): Promise<FileLine<Column>[]> {
  const { mostLines } = form;
  const count = text.split(/\r\n|\n|\r/, mostLines + 2).length - Number(/[\r\n]$/.test(text));
  if (count > mostLines) {
    const message = `At most ${mostLines} lines with the head.`;
    faults.push(fault(mostLines + 1, null, "TOO_MANY", message, "TOO_MANY_LINES"));
    return [];
  }
  const [head, ...records] = await recordsOf(text, faults);
  if (!head) {
    if (faults.length === 0)
      faults.push(fault(1, null, "REQUIRED", "The file is empty.", "EMPTY_FILE"));
    return [];
  }
  if (head.cells.length > CSV_COLUMNS) {
    const message = `At most ${CSV_COLUMNS} columns.`;
    faults.push(fault(1, null, "TOO_MANY", message, "TOO_MANY_COLUMNS"));
    return [];
  }
  const columns = columnsOf(head, form, await textsWithoutHead(head, records), faults);
  return columns === null ? [] : linesUnder(head, columns, records, faults);
}

async function linesUnder<Column extends string>(
  head: CsvRecord,
  columns: readonly (Column | null)[],
  records: readonly CsvRecord[],
  faults: Faults<FileFault>,
): Promise<FileLine<Column>[]> {
  const lines: FileLine<Column>[] = [];
  const turn = turns();
  for (const { line, cells, count } of records) {
    if (turn.due()) await turn.take();
    if (cells.length === 0) continue;
    // Spreadsheets write empty cells as far as any line of the sheet ever went, or leave them out.
    const isWhole = count >= head.cells.length && cells.length <= Math.min(head.count, CSV_COLUMNS);
    if (isWhole) {
      lines.push({ line, cells: named(columns, cells) });
      continue;
    }
    const message = `${count} cells; the head has ${head.count}. Is a separator not in quotes?`;
    faults.push(fault(line, null, "BAD_FORMAT", message, "CELLS"));
  }
  return lines;
}

interface CsvRecord {
  /** Where it begins. */
  readonly line: number;
  /** Up to the last one with text in it, and one more than may be at most. */
  readonly cells: readonly string[];
  /** Of its cells, those without text included. */
  readonly count: number;
}

/** What the parser hands over with `info`. */
interface ParsedRecord {
  readonly record: readonly string[];
  readonly info: { readonly lines: number };
}

async function recordsOf(text: string, faults: Faults<FileFault>): Promise<CsvRecord[]> {
  const parser = parse({
    delimiter: delimiterOf(text),
    record_delimiter: ["\r\n", "\n", "\r"],
    relax_column_count: true,
    info: true,
  });
  const found: CsvRecord[] = [];
  const source = Readable.from(slicesOf(Buffer.from(text)));
  source.pipe(parser);
  let line = 1;
  try {
    for await (const { record, info } of parser as AsyncIterable<ParsedRecord>) {
      found.push({ line, cells: writtenOf(record), count: record.length });
      line = info.lines + 1;
      // What is below a head that is refused is not read.
      if (found.length === 1 && writtenOf(record).length > CSV_COLUMNS) break;
    }
    return found;
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const message =
      "A quote is wrong: a cell with quotes in it is in quotes, and those in it are doubled.";
    faults.push(fault(Number(error["lines"] ?? 1), null, "BAD_FORMAT", message, "QUOTES"));
    return [];
  } finally {
    source.destroy();
  }
}

async function* slicesOf(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
    yield bytes.subarray(at, at + SLICE_BYTES);
    await nextTurn();
  }
}

/** The commonest one in the first line. */
function delimiterOf(text: string): string {
  const counts = new Map([",", ";", "\t"].map((delimiter) => [delimiter, 0]));
  for (const character of firstLine(text)) {
    const count = counts.get(character);
    if (count !== undefined) counts.set(character, count + 1);
  }
  const [commonest] = [...counts].reduce((one, other) => (other[1] > one[1] ? other : one));
  return commonest;
}

/** Of a line that has more columns than may be, as much as tells its delimiter. */
function firstLine(text: string): string {
  const end = text.search(/[\r\n]/);
  return text.slice(0, Math.min(end < 0 ? text.length : end, 64 * CSV_COLUMNS));
}

/** Most blank cells are empty: a line may have two million of them. */
const isBlank = (cell: string) => cell === "" || cell.trim() === "";

function writtenOf(cells: readonly string[]): string[] {
  const width = cells.findLastIndex((cell) => !isBlank(cell)) + 1;
  return cells.slice(0, Math.min(width, CSV_COLUMNS + 1));
}

/** Places of the columns that have text in some line and none in the head. */
async function textsWithoutHead(
  head: CsvRecord,
  records: readonly CsvRecord[],
): Promise<ReadonlySet<number>> {
  const found = new Set<number>();
  const turn = turns();
  for (const { cells } of records) {
    if (turn.due()) await turn.take();
    for (const [at, cell] of cells.entries()) {
      if (isBlank(head.cells[at] ?? "") && !isBlank(cell)) found.add(at);
    }
  }
  return found;
}

/**
 * @param headless columns with text in them that the head does not name; those without text are passed over
 * @returns the name of each column, null for one that is ignored; null if the head is faulty, and no line can be read by it
 */
function columnsOf<Column extends string, Reason extends string>(
  { cells, count }: CsvRecord,
  { columns: known, needed, unknownColumn }: Form<Column, Reason>,
  headless: ReadonlySet<number>,
  faults: Faults<Reason | FileFault>,
): (Column | null)[] | null {
  const heads = Array.from({ length: Math.min(count, CSV_COLUMNS) }, (_, at) => cells[at] ?? "");
  const columns = heads.map((cell) => {
    if (isBlank(cell)) return null;
    const wanted = cell.trim().toLowerCase();
    return known.find((name) => name.toLowerCase() === wanted) ?? null;
  });
  const found = faults.length;
  for (const [at, name] of columns.entries()) {
    const isEmpty = isBlank(heads[at] ?? "") && !headless.has(at);
    if (name === null && unknownColumn !== null && !isEmpty) {
      const message = `Not a column; the columns are ${known.join(", ")}.`;
      const given = (heads[at] ?? "").trim().slice(0, 64);
      faults.push(fault(1, given, "UNKNOWN_FIELD", message, unknownColumn));
    } else if (name !== null && columns.indexOf(name) < at) {
      faults.push(fault(1, name, "NOT_ALLOWED", "The column is there twice.", "REPEATED_COLUMN"));
    }
  }
  for (const name of needed) {
    if (!columns.includes(name))
      faults.push(fault(1, name, "REQUIRED", "The column is missing.", "MISSING_COLUMN"));
  }
  return faults.length > found ? null : columns;
}

function named<Column extends string>(
  columns: readonly (Column | null)[],
  cells: readonly string[],
): FileLine<Column>["cells"] {
  const known = columns.flatMap((name, at) =>
    name === null ? [] : [[name, unguarded(cells[at] ?? "")] as const],
  );
  return Object.fromEntries(known) as Partial<Record<Column, string>>;
}

export function fault<Reason extends string>(
  line: number,
  column: string | null,
  code: FaultCode,
  message: string,
  reason: Reason | null = null,
): LineFault<Reason> {
  return { line, column: column || null, code, reason, message };
}
