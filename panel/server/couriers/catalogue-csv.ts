/**
 * A courier's catalogue as CSV: one line for each code, and behind it one for each of its narrower mappings, which has a
 * condition. What is written is read back as it was. Commas, semicolons (as Excel in Italian writes) and tabs separate.
 */

import { turns } from "#core/platform/process/next-turn.ts";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";
import { type Fault, listFaults } from "#core/platform/schema/fault.ts";
import { limit } from "#core/platform/schema/limit.ts";
import {
  CATALOGUE_LIMIT,
  RULES_PER_CODE,
  SetupCatalogueEntry,
  SetupMappingRule,
} from "#core/setup/rules/setup.ts";
import type { CatalogueEntry, MappingRule } from "#core/statuses/rules/map-status.ts";
import {
  CSV_FAULTS_LISTED,
  FILE_FAULTS,
  type FileLine,
  fault,
  type LineFault,
  linesOf,
} from "#panel/server/http/csv-file.ts";
import { type Cell, csvText, type Separator } from "#panel/server/http/csv-text.ts";

export const CATALOGUE_FILE_LINES = limit(
  10_001,
  "lines of a catalogue's CSV file, the header included",
  "refused whole",
);

const COLUMNS = [
  "code",
  "description",
  "status",
  "statusDetail",
  "terminal",
  "reasonCode",
  "isReturn",
  "deliveredTo",
] as const;
type Column = (typeof COLUMNS)[number];

const NEEDED = ["code", "status", "statusDetail"] as const satisfies readonly Column[];
const CONDITIONS = ["reasonCode", "isReturn", "deliveredTo"] as const satisfies readonly Column[];

const FORM = {
  columns: COLUMNS,
  needed: NEEDED,
  mostLines: CATALOGUE_FILE_LINES,
  unknownColumn: "UNKNOWN_COLUMN",
} as const;

/** Spreadsheets write truth in their own language. */
const TRUTH: Readonly<Record<string, boolean>> = {
  true: true,
  vero: true,
  yes: true,
  sì: true,
  si: true,
  "1": true,
  false: false,
  falso: false,
  no: false,
  "0": false,
};

const entryChecker = compileSchema(SetupCatalogueEntry);
const ruleChecker = compileSchema(SetupMappingRule);

/** What only a file can have wrong, so that the panel says it in the visitor's language. */
export const CATALOGUE_FAULTS = [
  ...FILE_FAULTS,
  ...(["UNKNOWN_COLUMN", "TOO_MANY_CODES", "REPEATED_CODE"] as const),
  ...(["CONDITION_FIRST", "TOO_MANY_CONDITIONS", "REPEATED_CONDITION"] as const),
  ...(["NO_WHOLE_NUMBER", "DETAIL_ALONE", "UNKNOWN_DETAIL", "NO_TRUTH"] as const),
] as const;
export type CatalogueFault = (typeof CATALOGUE_FAULTS)[number];

type CatalogueLineFault = LineFault<CatalogueFault>;

export type ReadCatalogue =
  | { readonly entries: readonly CatalogueEntry[]; readonly errors: null }
  | { readonly entries: null; readonly errors: readonly CatalogueLineFault[] };

interface CellFault extends Fault {
  readonly reason?: CatalogueFault;
}

type Line = FileLine<Column>;

/** A code, and the narrower mappings read so far. */
interface Draft {
  readonly entry: CatalogueEntry;
  readonly rules: MappingRule[];
}

export function catalogueCsv(entries: readonly CatalogueEntry[], separator: Separator): string {
  const lines = entries.flatMap((entry): Cell[][] => [
    lineOf(entry.code, entry.description, entry, entry.terminal, {}),
    ...(entry.rules ?? []).map((rule) => lineOf(entry.code, "", rule, rule.terminal ?? null, rule)),
  ]);
  return csvText([[...COLUMNS], ...lines], separator);
}

function lineOf(
  code: string,
  description: string,
  { status, statusDetail = 0 }: Pick<CatalogueEntry, "status" | "statusDetail">,
  terminal: boolean | null,
  { reasonCode, isReturn, deliveredTo }: Partial<MappingRule>,
): Cell[] {
  const detail = status === undefined ? null : statusDetail;
  const conditions = [reasonCode ?? null, isReturn ?? null, deliveredTo ?? null];
  return [code, description, status ?? null, detail, terminal, ...conditions];
}

/** What is the same whatever the catalogue in force is. */
export interface CatalogueFile {
  readonly lines: readonly Line[];
  readonly faults: readonly CatalogueLineFault[];
}

export async function catalogueFile(text: string): Promise<CatalogueFile> {
  const faults: CatalogueLineFault[] = [];
  return { lines: await linesOf(text, FORM, faults), faults };
}

/**
 * @param before the catalogue in force: a column that the file does not have leaves what is in it
 * @param details ids of the registered status details
 */
export async function readCatalogue(
  file: CatalogueFile,
  before: ReadonlyMap<string, CatalogueEntry>,
  details: ReadonlySet<number>,
): Promise<ReadCatalogue> {
  const { lines } = file;
  const faults = [...file.faults];
  const drafts = new Map<string, Draft>();
  const turn = turns();
  for (const line of lines) {
    if (turn.due()) await turn.take();
    if (isRule(line)) addRule(drafts, line, details, faults);
    else addEntry(drafts, line, before, details, faults);
  }
  if (drafts.size > CATALOGUE_LIMIT) {
    faults.push(fault(1, null, "TOO_MANY", `At most ${CATALOGUE_LIMIT} codes.`, "TOO_MANY_CODES"));
  }
  if (faults.length > 0) {
    const sorted = faults.sort((one, other) => one.line - other.line);
    return { entries: null, errors: sorted.slice(0, CSV_FAULTS_LISTED) };
  }
  const hasRules = lines.some(({ cells }) => CONDITIONS.some((name) => name in cells));
  const entries = [...drafts.values()].map(({ entry, rules }) => ({
    ...entry,
    ...rulesOf(hasRules ? rules : before.get(entry.code)?.rules),
  }));
  return { entries, errors: null };
}

function rulesOf(rules: readonly MappingRule[] = []): Pick<CatalogueEntry, "rules"> {
  return rules.length > 0 ? { rules } : {};
}

function isRule({ cells }: Line): boolean {
  return CONDITIONS.some((name) => (cells[name] ?? "").trim() !== "");
}

function addEntry(
  drafts: Map<string, Draft>,
  { line, cells }: Line,
  before: ReadonlyMap<string, CatalogueEntry>,
  details: ReadonlySet<number>,
  faults: CatalogueLineFault[],
): void {
  const { code = "" } = cells;
  const known = before.get(code);
  const found: CellFault[] = [];
  const entry = {
    code,
    description: cells.description ?? known?.description ?? "",
    terminal:
      truthOf(cells, "terminal", found) ??
      (cells.terminal === undefined && known?.terminal === true),
    ...pairOf(cells, details, found),
  };
  if (drafts.has(code)) {
    const message = "The code has a line already; a narrower mapping of it needs a condition.";
    found.push({ path: "code", code: "NOT_ALLOWED", message, reason: "REPEATED_CODE" });
  }
  if (found.length === 0 && !entryChecker.check(entry))
    found.push(...listFaults(entryChecker.errors(entry)));
  faults.push(...found.map((one) => ofLine(line, one)));
  // Also where it has a fault: its narrower mappings are then not reported for it.
  if (!drafts.has(code)) drafts.set(code, { entry: entry as CatalogueEntry, rules: [] });
}

function addRule(
  drafts: ReadonlyMap<string, Draft>,
  { line, cells }: Line,
  details: ReadonlySet<number>,
  faults: CatalogueLineFault[],
): void {
  const found: CellFault[] = [];
  const terminal = truthOf(cells, "terminal", found);
  const isReturn = truthOf(cells, "isReturn", found);
  const { reasonCode = "", deliveredTo = "", code = "" } = cells;
  const rule = {
    ...(reasonCode !== "" && { reasonCode }),
    ...(isReturn !== null && { isReturn }),
    ...(deliveredTo.trim() !== "" && { deliveredTo: deliveredTo.trim().toUpperCase() }),
    ...pairOf(cells, details, found),
    ...(terminal !== null && { terminal }),
  };
  if (found.length === 0 && !ruleChecker.check(rule))
    found.push(...listFaults(ruleChecker.errors(rule)));
  const draft = drafts.get(code);
  if (draft) found.push(...placeFaults(draft, rule as MappingRule));
  else {
    const message = "A line with a condition stands behind the line of its code.";
    found.push({ path: "code", code: "NOT_ALLOWED", message, reason: "CONDITION_FIRST" });
  }
  faults.push(...found.map((one) => ofLine(line, one)));
  if (found.length === 0) draft?.rules.push(rule as MappingRule);
}

function placeFaults({ rules }: Draft, rule: MappingRule): CellFault[] {
  if (rules.length >= RULES_PER_CODE) {
    const message = `At most ${RULES_PER_CODE} lines with a condition for each code.`;
    return [{ path: "code", code: "TOO_MANY", message, reason: "TOO_MANY_CONDITIONS" }];
  }
  const isRepeated = rules.some((one) => CONDITIONS.every((name) => one[name] === rule[name]));
  const message = "An earlier line of the code has these conditions.";
  return isRepeated
    ? [{ path: "", code: "NOT_ALLOWED", message, reason: "REPEATED_CONDITION" }]
    : [];
}

/** Empty = not mapped. */
function pairOf(
  cells: Line["cells"],
  details: ReadonlySet<number>,
  found: CellFault[],
): Pick<CatalogueEntry, "status" | "statusDetail"> {
  const status = (cells.status ?? "").trim().toUpperCase();
  const text = (cells.statusDetail ?? "").trim();
  const detail = text === "" ? 0 : Number(text);
  if (!/^\d*$/.test(text) || !Number.isSafeInteger(detail)) {
    found.push({
      path: "statusDetail",
      code: "WRONG_TYPE",
      message: "A whole number; empty or 0 = none.",
      reason: "NO_WHOLE_NUMBER",
    });
  } else if (detail !== 0 && status === "") {
    found.push({
      path: "statusDetail",
      code: "NOT_ALLOWED",
      message: "A detail needs a status.",
      reason: "DETAIL_ALONE",
    });
  } else if (detail !== 0 && !details.has(detail)) {
    found.push({
      path: "statusDetail",
      code: "NOT_ALLOWED",
      message: `No status detail ${detail}.`,
      reason: "UNKNOWN_DETAIL",
    });
  }
  return {
    ...(status !== "" && { status: status as NonNullable<CatalogueEntry["status"]> }),
    ...(detail !== 0 && { statusDetail: detail }),
  };
}

/** Null = it says nothing. */
function truthOf(
  cells: Line["cells"],
  column: "terminal" | "isReturn",
  found: CellFault[],
): boolean | null {
  const text = (cells[column] ?? "").trim().toLowerCase();
  if (text === "") return null;
  const truth = Object.hasOwn(TRUTH, text) ? TRUTH[text] : undefined;
  if (truth === undefined) {
    const message = "true or false; empty = not said.";
    found.push({ path: column, code: "NOT_ALLOWED", message, reason: "NO_TRUTH" });
  }
  return truth ?? null;
}

function ofLine(line: number, { path, code, message, reason }: CellFault): CatalogueLineFault {
  return fault(line, path, code, message, reason);
}
