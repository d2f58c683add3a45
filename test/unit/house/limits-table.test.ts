/**
 * The table of docs/limits.md: every figure in it is the value of a constant in the source.
 *
 * A row is `| what | limit | constants | at the limit |`. The figures of the second cell and the constants of the third stand in
 * the same order. A constant is `NAME`, `NAME.member` or `file.ts:NAME`, in sums and products, or an environment variable, whose
 * default is meant.
 */
import { describe, expect, test } from "bun:test";
import { VARIABLES } from "#core/platform/environment/variables.ts";

interface Row {
  readonly what: string;
  readonly figures: readonly Quantity[];
  readonly constants: readonly string[];
  readonly atTheLimit: string;
}

/** An amount in the smallest unit of its kind: milliseconds, bytes, months, or a plain number. */
interface Quantity {
  readonly kind: string;
  readonly amount: number;
}

const UNITS: Readonly<Record<string, Quantity>> = {
  "": { kind: "number", amount: 1 },
  ms: { kind: "time", amount: 1 },
  s: { kind: "time", amount: 1_000 },
  min: { kind: "time", amount: 60_000 },
  h: { kind: "time", amount: 3_600_000 },
  day: { kind: "time", amount: 86_400_000 },
  month: { kind: "months", amount: 1 },
  byte: { kind: "size", amount: 1 },
  KiB: { kind: "size", amount: 1024 },
  MiB: { kind: "size", amount: 1024 ** 2 },
  GiB: { kind: "size", amount: 1024 ** 3 },
};
/** The unit of a constant is the end of its name. */
const NAME_ENDS: ReadonlyArray<readonly [RegExp, Quantity | undefined]> = [
  [/ms$/i, UNITS["ms"]],
  [/(?<!per_?)seconds$/i, UNITS["s"]],
  [/days$/i, UNITS["day"]],
  [/months$/i, UNITS["month"]],
  [/bytes$/i, UNITS["byte"]],
];
const FIGURE =
  /1 in (\d+) s|(\d[\d,]*(?:\.\d+)?)(?: (ms|s|min|h|day|month|byte|KiB|MiB|GiB)s?\b)?/g;

const TABLE_START = "| What | Limit | Constant | At the limit |";
const PATHS = ["core", "ingest", "processors", "api", "panel", "analytics", "cli"].flatMap(
  (room) => [...new Bun.Glob(`${room}/**/*.{ts,lua}`).scanSync(".")],
);
const SOURCES = await Promise.all(
  PATHS.map(async (path) => ({ path, text: await Bun.file(path).text() })),
);

async function readRows(): Promise<Row[]> {
  const page = await Bun.file("docs/limits.md").text();
  const [, table = ""] = page.split(TABLE_START);
  const lines = table.trim().split("\n\n")[0]?.split("\n").slice(1) ?? [];
  return lines.map((line) => {
    const [, what = "", limit = "", constants = "", atTheLimit = ""] = line
      .split("|")
      .map((cell) => cell.trim());
    return {
      what,
      figures: [...limit.matchAll(FIGURE)].map(readFigure),
      constants: [...constants.matchAll(/`([^`]+)`/g)].map(([, text = ""]) => text),
      atTheLimit,
    };
  });
}

function readFigure([, seconds, digits = "", unit = ""]: RegExpMatchArray): Quantity {
  if (seconds !== undefined) return { kind: "number", amount: 1 / Number(seconds) };
  const { kind, amount } = UNITS[unit] ?? { kind: "unknown", amount: Number.NaN };
  return { kind, amount: Number(digits.replaceAll(",", "")) * amount };
}

/** Sums of products, which is all that our limits are. */
function evaluate(expression: string, from: string | null): number {
  return expression.split(" + ").reduce((sum, term) => sum + evaluateTerm(term, from), 0);
}

function evaluateTerm(term: string, from: string | null): number {
  const [first = "", ...rest] = term.split(/ ([*/]) /);
  let value = evaluateFactor(first, from);
  for (let at = 0; at < rest.length; at += 2) {
    const factor = evaluateFactor(rest[at + 1] ?? "", from);
    value = rest[at] === "*" ? value * factor : value / factor;
  }
  return value;
}

function evaluateFactor(text: string, from: string | null): number {
  const digits = text.trim().replaceAll("_", "");
  return /^[\d.]+$/.test(digits) ? Number(digits) : evaluateConstant(text.trim(), from);
}

/** @param from the file that names it: its own constants come first */
function evaluateConstant(reference: string, from: string | null): number {
  const [, file, name = "", member] =
    /^(?:([\w-]+\.(?:ts|lua)):)?([A-Z_]+)(?:\.(\w+))?$/.exec(reference) ?? [];
  const variable = (VARIABLES as Readonly<Record<string, { fallback: string | null }>>)[name];
  if (variable) return Number(variable.fallback);
  const all = SOURCES.filter(({ path }) => file === undefined || path.endsWith(`/${file}`)).flatMap(
    ({ path, text }) => definitionsIn(path, text, name, member),
  );
  const own = all.filter(({ path }) => path === from);
  const [found, second] = own.length > 0 ? own : all;
  if (found === undefined) throw new Error(`no file defines ${reference}`);
  if (second) throw new Error(`${reference} stands in ${found.path} and in ${second.path}`);
  return evaluate(found.expression, found.path);
}

function definitionsIn(path: string, text: string, name: string, member: string | undefined) {
  if (path.endsWith(".lua")) return luaDefinitions(path, text, name);
  const [, value] =
    new RegExp(`^(?:export )?const ${name}(?:: \\w+)? = ([^;]+);`, "m").exec(text) ?? [];
  const own = member === undefined ? value : memberOf(value ?? "", member);
  return own === undefined ? [] : [{ path, expression: own.replace(" as const", "") }];
}

function memberOf(object: string, member: string): string | undefined {
  return new RegExp(`\\b${member}: ([^,}\n]+)`).exec(object)?.[1];
}

/** `local ONE, OTHER = 1, 2` */
function luaDefinitions(path: string, text: string, name: string) {
  return [...text.matchAll(/^local ([A-Z_, ]+) = (.+)$/gm)].flatMap(
    ([, names = "", values = ""]) => {
      const at = names.split(", ").indexOf(name);
      const expression = values.split(/, |$/)[at];
      return expression === undefined ? [] : [{ path, expression }];
    },
  );
}

function quantityOf(constant: string): Quantity {
  const [, unit] = NAME_ENDS.find(([end]) => end.test(constant)) ?? [];
  const { kind, amount } = unit ?? { kind: "number", amount: 1 };
  return { kind, amount: evaluate(constant, null) * amount };
}

describe("the table of docs/limits.md", async () => {
  const rows = await readRows();

  test("has its rows", () => {
    expect(rows.length).toBeGreaterThan(60);
  });

  test("has figures in no other cell, where nothing would compare them; HTTP statuses are none", () => {
    const others = rows.flatMap(({ what, atTheLimit }) => [
      what,
      atTheLimit.replace(/\b[45]\d\d\b/g, ""),
    ]);
    expect(others.filter((text) => /\b\d/.test(text))).toEqual([]);
  });

  test.each(rows.map((row) => [row.what, row] as const))("%s", (_, { figures, constants }) => {
    expect(figures.length).toBeGreaterThan(0);
    expect(constants.map(quantityOf)).toEqual([...figures]);
  });
});
