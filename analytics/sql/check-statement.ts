/**
 * Whether a statement may be asked, read from the engine's own trees of it and never from its text.
 *
 * | Tree           | Shows                                             | Cannot be fooled by                                |
 * |----------------|---------------------------------------------------|----------------------------------------------------|
 * | syntax         | every name as the parser took it, settings        | quotes, comments, case, nesting, an EXPLAIN inside |
 * | resolved query | which table, table function and function each is  | aliases, CTEs, `x IN table`, `arrayMap(file, …)`   |
 *
 * The syntax tree is judged first, since resolving computes constants. What a tree shows and we do not know is refused. A
 * name with a line break in it can only add lines to a tree; each added line is judged like any other.
 */
import {
  isAllowedFunction,
  isAllowedTableFunction,
  PATTERN_FUNCTIONS,
} from "./allowed-functions.ts";

/** The table of a statement without FROM in the resolved query. */
const NO_TABLE = "system.one";

/** The tables of ours and the functions of the engine. */
export interface Reach {
  readonly database: string;
  /** Names of our tables and views. */
  readonly tables: ReadonlySet<string>;
  /** What clients of ClickHouse look up before they ask, with the database's name: tables and functions. None for statements of people. */
  readonly catalogue: Catalogue;
  /** Lowercase names of every function of the engine. */
  readonly engineFunctions: ReadonlySet<string>;
}

export interface Catalogue {
  readonly tables: ReadonlySet<string>;
  /** Lowercase; harmless, and of no use in a question about deliveries. */
  readonly functions: ReadonlySet<string>;
}

/** `Kind name (alias a) (children 2)`: everything after the kind belongs to the node. */
const SYNTAX_LINE = /^ *([A-Z]\w*(?:::\w+)?)(?: (.*))?$/;
const TAIL = /(?: \(alias .*\))?(?: \(children \d+\))?$/s;

/**
 * Nodes that only contain others or a constant. `Set` (SETTINGS) and `ColumnsApplyTransformer` are deliberately missing.
 */
const SYNTAX_KINDS = new Set([
  ...[
    "SelectWithUnionQuery",
    "SelectIntersectExceptQuery",
    "SelectQuery",
    "Subquery",
    "WithElement",
  ],
  ...["ExpressionList", "TablesInSelectQuery", "TablesInSelectQueryElement", "TableExpression"],
  ...["TableJoin", "ArrayJoin", "Literal", "Asterisk", "QualifiedAsterisk", "OrderByElement"],
  ...["ColumnsRegexpMatcher", "QualifiedColumnsRegexpMatcher", "ColumnsListMatcher"],
  ...["QualifiedColumnsListMatcher", "ColumnsTransformerList", "ColumnsExceptTransformer"],
  ...["ColumnsReplaceTransformer", "ColumnsReplaceTransformer::Replacement", "InterpolateElement"],
  ...["WindowDefinition", "WindowListElement", "SampleRatio"],
]);

/**
 * Our columns that share their name with a function that is not allowed. Used as a function, the name is refused in the
 * resolved query.
 */
export const COLUMNS_LIKE_FUNCTIONS: ReadonlySet<string> = new Set(["version"]);

/** @returns what is refused, as the subject of a sentence; null = nothing */
export function faultOfSyntax(lines: readonly string[], reach: Reach): string | null {
  if (!lines[0]?.startsWith("SelectWithUnionQuery")) return "A statement that is no SELECT";
  for (const line of lines.flatMap((text) => text.split("\n"))) {
    const [, kind = "", rest = ""] = SYNTAX_LINE.exec(line) ?? [];
    const fault = faultOfNode(kind, ` ${rest}`.replace(TAIL, "").trim(), reach);
    if (fault !== null) return fault;
  }
  return faultOfTypes(lines) ?? faultOfPatterns(lines);
}

/** Functions that take the name of a type as a string, and the index of that argument. */
const TYPE_ARGUMENTS: readonly { readonly name: RegExp; readonly at: number }[] = [
  { name: /^ *Function (CAST|accurateCast\w*) /i, at: 1 },
  { name: /^ *Function JSONExtract /i, at: -1 },
  { name: /^ *Function values /i, at: 0 },
];

/** A type must be a literal so that it can be checked: the engine reads a handmade aggregate state without checking it. */
function faultOfTypes(lines: readonly string[]): string | null {
  if (lines.some((line) => /^ *Literal .*AggregateFunction/i.test(line))) {
    return "The type AggregateFunction";
  }
  for (const [index, line] of lines.entries()) {
    const found = TYPE_ARGUMENTS.find(({ name }) => name.test(line));
    if (!found) continue;
    const argument = argumentsOf(lines, index).at(found.at) ?? "";
    if (!/^ *Literal /.test(argument)) return "A type that is computed";
  }
  return null;
}

const PATTERN_LINE = new RegExp(`^ *Function (?:${PATTERN_FUNCTIONS.join("|")}) `, "i");

/** The texts of `splitByRegexp` come after its pattern. */
const SPLIT_LINE = /^ *Function splitByRegexp /i;

/** `arrayMap(match, …)` gives the function its pattern where no tree shows it. */
const NAMED_LINE = new RegExp(
  `^ *Identifier (?:${[...PATTERN_FUNCTIONS, "splitByRegexp"].join("|")})(?: |$)`,
  "i",
);

function faultOfPatterns(lines: readonly string[]): string | null {
  for (const [index, line] of lines.entries()) {
    if (NAMED_LINE.test(line)) return "A pattern that is computed";
    const isSplit = SPLIT_LINE.test(line);
    if (!isSplit && !PATTERN_LINE.test(line)) continue;
    const pattern = argumentsOf(lines, index).at(isSplit ? 0 : 1) ?? "";
    if (!/^ *Literal /.test(pattern)) return "A pattern that is computed";
  }
  return null;
}

/** Arguments of the function in this line: two levels below it, under its expression list. */
function argumentsOf(lines: readonly string[], index: number): string[] {
  const depthOf = (line: string) => line.length - line.trimStart().length;
  const depth = depthOf(lines[index] ?? "");
  const found: string[] = [];
  for (let at = index + 1; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    if (depthOf(line) <= depth) break;
    if (depthOf(line) === depth + 2) found.push(line);
  }
  return found;
}

function faultOfNode(kind: string, name: string, reach: Reach): string | null {
  switch (kind) {
    case "Function":
      // Table functions appear here too; the resolved query shows which of the two it is.
      return isCallable(name, reach) || isAllowedTableFunction(name)
        ? null
        : `The function ${name}`;
    case "TableIdentifier":
      return faultOfTable(name, reach);
    case "Identifier":
      return faultOfIdentifier(name, reach);
    case "Set":
      return "SETTINGS";
    default:
      return SYNTAX_KINDS.has(kind) ? null : `What ClickHouse calls ${kind || "a broken line"}`;
  }
}

/** A name without a database may be a CTE: the resolved query shows what it refers to. */
function faultOfTable(name: string, reach: Reach): string | null {
  return /^\w+$/.test(name) || isReadable(name, reach) ? null : `The table ${name}`;
}

function isOurs(name: string, { database, tables }: Reach): boolean {
  return name.startsWith(`${database}.`) && tables.has(name.slice(database.length + 1));
}

function isReadable(name: string, reach: Reach): boolean {
  return isOurs(name, reach) || reach.catalogue.tables.has(name);
}

function isCallable(name: string, { catalogue }: Reach): boolean {
  return isAllowedFunction(name) || catalogue.functions.has(name.toLowerCase());
}

/** `arrayMap(file, …)` names a function without brackets, and resolving the query would already call it. */
function faultOfIdentifier(name: string, reach: Reach): string | null {
  // `x IN system.one`: once resolved, it looks like the table of a statement without FROM.
  if (name.toLowerCase() === NO_TABLE) return `The table ${name}`;
  const isFunction = reach.engineFunctions.has(name.toLowerCase());
  if (!isFunction || isCallable(name, reach)) return null;
  return COLUMNS_LIKE_FUNCTIONS.has(name) ? null : `The name ${name}, a function's,`;
}

/** `TABLE id: 3, alias: __table1, table_name: default.lanes, final: 1` */
const QUERY_LINE = /^ *([A-Z][A-Z_ ]*?) id: \d+(.*)$/;

const QUERY_KINDS = new Set([
  ...["QUERY", "UNION", "LIST", "CONSTANT", "COLUMN", "LAMBDA", "SORT", "INTERPOLATE", "WINDOW"],
  ...["JOIN", "CROSS JOIN", "ARRAY_JOIN"],
]);

/** A recursive CTE reads its own previous rows from this table. */
const RECURSION = /^_temporary_and_external_tables\._tmp_[0-9a-f-]{36}, temporary_table_name: /;

/** Functions that resolving produces for `CASE x WHEN …`, casts and scalar subqueries. */
const RESOLVED_FUNCTIONS = new Set(["_CAST", "caseWithExpression", "__scalarSubqueryResult"]);

/** @returns as `faultOfSyntax` */
export function faultOfQuery(lines: readonly string[], reach: Reach): string | null {
  if (!/^(QUERY|UNION) id: 0/.test(lines[0] ?? "")) return "A statement that cannot be resolved";
  for (const line of lines.flatMap((text) => text.split("\n"))) {
    if (/^ *SETTINGS\b/.test(line)) return "SETTINGS";
    // Headings and names of result columns; everything that is read or called has a node of its own.
    const [, kind, rest = ""] = QUERY_LINE.exec(line) ?? [];
    if (kind === undefined || QUERY_KINDS.has(kind)) continue;
    const fault = faultOfResolved(kind, rest.replace(/^, alias: \w+/, ""), reach);
    if (fault !== null) return fault;
  }
  return null;
}

function faultOfResolved(kind: string, rest: string, reach: Reach): string | null {
  if (kind === "TABLE") {
    const [, table = ""] = /^, table_name: (.*?)(, final: 1)?$/.exec(rest) ?? [];
    const isKnown = isReadable(table, reach) || table === NO_TABLE || RECURSION.test(table);
    return isKnown ? null : `The table ${table}`;
  }
  if (kind === "TABLE_FUNCTION") {
    const [, name = ""] = /^, table_function_name: (\w+)$/.exec(rest) ?? [];
    return isAllowedTableFunction(name) ? null : `The table function ${name}`;
  }
  if (kind === "FUNCTION") {
    const [, name = ""] = /^, function_name: (\w+), /.exec(rest) ?? [];
    return isCallable(name, reach) || RESOLVED_FUNCTIONS.has(name) ? null : `The function ${name}`;
  }
  return `What ClickHouse calls ${kind}`;
}
