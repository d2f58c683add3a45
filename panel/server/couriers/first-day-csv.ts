/** The file of a first-day comparison: what another tracking says of parcels, one event a line. */
import type { TrackedLine } from "#core/events/rules/compare-tracking.ts";
import { turns } from "#core/platform/process/next-turn.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { instantOf, isOffsetDateTime, parseRomeDateTime } from "#core/platform/time/rome-time.ts";
import {
  CSV_FAULTS_LISTED,
  FILE_FAULTS,
  type FileLine,
  fault,
  type LineFault,
  linesOf,
} from "#panel/server/http/csv-file.ts";

export const COMPARISON_FILE_LINES = limit(
  5_001,
  "lines of a first-day comparison, the header included",
  "refused whole",
);
/** Document 2, `trackingNumber` and `status.code`. */
const TEXT_LENGTH = limit(
  64,
  "characters of a number or code in a first-day comparison",
  "an error of its line",
);

const COLUMNS = ["trackingNumber", "code", "occurredAt"] as const;
type Column = (typeof COLUMNS)[number];

const FORM = {
  columns: COLUMNS,
  needed: COLUMNS,
  mostLines: COMPARISON_FILE_LINES,
  // An export of another tracking has more than is compared.
  unknownColumn: null,
} as const;

export const COMPARISON_FAULTS = [...FILE_FAULTS, "NO_INSTANT"] as const;
export type ComparisonFault = (typeof COMPARISON_FAULTS)[number];

type Fault = LineFault<ComparisonFault>;

export interface ReadTracking {
  readonly lines: readonly TrackedLine[];
  readonly errors: readonly Fault[];
}

export async function readTracking(text: string): Promise<ReadTracking> {
  const errors: Fault[] = [];
  const lines: TrackedLine[] = [];
  const turn = turns();
  for (const line of await linesOf<Column, ComparisonFault>(text, FORM, errors)) {
    lines.push(...trackedLine(line, errors));
    if (turn.due()) await turn.take();
  }
  if (lines.length === 0 && errors.length === 0) {
    errors.push(fault(1, null, "REQUIRED", "The file has no line.", "EMPTY_FILE"));
  }
  const sorted = errors.sort((one, other) => one.line - other.line);
  return { lines, errors: sorted.slice(0, CSV_FAULTS_LISTED) };
}

function trackedLine({ line, cells }: FileLine<Column>, errors: Fault[]): TrackedLine[] {
  const trackingNumber = (cells.trackingNumber ?? "").trim();
  const { code = "" } = cells;
  const found = [
    ...textFaults(line, "trackingNumber", trackingNumber),
    ...textFaults(line, "code", code),
  ];
  const occurredAtMs = instantIn((cells.occurredAt ?? "").trim());
  if (occurredAtMs === null) {
    const message = "A time such as 2026-11-20T09:58:12+01:00, or 2026-11-20 09:58:12 in Rome.";
    found.push(fault(line, "occurredAt", "BAD_FORMAT", message, "NO_INSTANT"));
  }
  errors.push(...found);
  return found.length > 0 || occurredAtMs === null
    ? []
    : [{ line, trackingNumber, code, occurredAtMs }];
}

function textFaults(line: number, column: Column, text: string): Fault[] {
  if (text.trim() === "") return [fault(line, column, "REQUIRED", "The value is missing.")];
  if (text.length <= TEXT_LENGTH) return [];
  return [fault(line, column, "TOO_LONG", `At most ${TEXT_LENGTH} characters.`)];
}

/** With an offset, or local in Rome as documents 1 and 3 write it, with or without seconds. Null = no time. */
function instantIn(text: string): number | null {
  if (isOffsetDateTime(text)) return instantOf(text);
  const local = text.replace("T", " ");
  return parseRomeDateTime(/^[\d-]{10} \d{2}:\d{2}$/.test(local) ? `${local}:00` : local);
}
