/**
 * docs/limits.md: a row for every call of `limit` and `rate` (`core/platform/schema/limit.ts`), read from the syntax trees of the
 * sources. The page's last section is written by hand, and stays.
 */
import { dirname, join } from "node:path";
import { parseSync } from "oxc-parser";

export const PAGE = "docs/limits.md";
const BY_HAND = "\n## Settings and scripts\n";
const HEAD = "| What | Limit | Constant | At the limit |\n|---|---|---|---|\n";
const INTRODUCTION = `# Limits

Every limit is a constant in the source; \`npm run tool -- limits\` makes the tables of them. A rate is a number at once, then so
many in a time.
`;
/** A section for each theme: the first folder that a file is in decides. */
const SECTIONS: ReadonlyArray<readonly [title: string, ...folders: string[]]> = [
  ["Couriers' messages", "ingest"],
  ["Events", "core/events", "processors/track"],
  ["Shipments", "core/shipments"],
  ["Statuses and catalogues", "core/statuses"],
  ["The merchant API", "api"],
  ["Imports, labels and messages", "core/merchants", "processors/jobs", "processors/notify"],
  ["Webhooks", "core/webhooks", "processors/webhooks"],
  ["Companies, channels and the setup file", "core/configuration", "core/setup"],
  ["Accounts and the audit log", "core/accounts", "panel/server/accounts"],
  ["Search", "core/search"],
  ["The archive", "core/archive", "analytics/archive"],
  ["Benchmarks and analytics", "core/benchmarks", "analytics"],
  ["The panel", "panel"],
  ["Secrets", "core/platform/secrets"],
  ["Bodies and calls", "core/platform/http", "core/platform/network", "core/platform/schema"],
  ["Redis and the logs", "core/platform/redis", "core/platform/log", "core/placement"],
  ["Processes", "core", "processors", "cli"],
];

/** A part of a syntax tree. */
interface Node {
  readonly type: string;
  readonly [member: string]: unknown;
}

/** The names that a file defines and imports at its top level. */
interface Source {
  readonly path: string;
  readonly program: Node;
  readonly constants: ReadonlyMap<string, Node>;
  /** Local name to the path it comes from and its name there. */
  readonly imports: ReadonlyMap<string, readonly [path: string, name: string]>;
}

interface Limit {
  readonly path: string;
  readonly of: string;
  readonly figure: string;
  readonly name: string;
  readonly atTheLimit: string;
}

export async function limitsPage(): Promise<string> {
  const limits = limitsOf(await readSources());
  const [, byHand = ""] = (await Bun.file(PAGE).text()).split(BY_HAND);
  const sections = SECTIONS.map(([title]) => {
    const own = limits.filter(({ path }) => sectionOf(path) === title);
    const rows = own.map(
      ({ of, figure, name, atTheLimit }) => `| ${of} | ${figure} | \`${name}\` | ${atTheLimit} |\n`,
    );
    return rows.length > 0 ? `\n## ${title}\n\n${HEAD}${rows.join("")}` : "";
  });
  return INTRODUCTION + sections.join("") + BY_HAND + byHand;
}

function sectionOf(path: string): string {
  const [title] = SECTIONS.find(([, ...folders]) => folders.some((one) => isIn(one, path))) ?? [];
  if (title === undefined) throw new Error(`${path} is in no section of ${PAGE}`);
  return title;
}

function isIn(folder: string, path: string): boolean {
  return path.startsWith(`${folder}/`);
}

async function readSources(): Promise<Source[]> {
  const glob = new Bun.Glob("{core,ingest,api,processors,analytics,panel,cli}/**/*.{ts,tsx}");
  const paths = [...glob.scanSync(".")].sort();
  return await Promise.all(paths.map(async (path) => sourceOf(path, await Bun.file(path).text())));
}

function sourceOf(path: string, text: string): Source {
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  const tree = program as unknown as Node;
  const constants = new Map<string, Node>();
  const imports = new Map<string, readonly [string, string]>();
  for (const statement of nodesIn(tree["body"])) {
    const from = nodeOf(statement["source"]);
    if (statement.type === "ImportDeclaration" && from) {
      const place = pathOf(path, String(from["value"]));
      for (const { imported, local } of nodesIn(statement["specifiers"])) {
        const name = nameOf(imported);
        if (name !== undefined) imports.set(nameOf(local) ?? name, [place, name]);
      }
    }
    const declaration = nodeOf(statement["declaration"]) ?? statement;
    for (const { id, init } of nodesIn(declaration["declarations"])) {
      const [name, value] = [nameOf(id), nodeOf(init)];
      if (name !== undefined && value) constants.set(name, value);
    }
  }
  return { path, program: tree, constants, imports };
}

function pathOf(path: string, imported: string): string {
  return imported.startsWith("#") ? imported.slice(1) : join(dirname(path), imported);
}

function limitsOf(sources: readonly Source[]): Limit[] {
  const numberOf = evaluator(new Map(sources.map((source) => [source.path, source])));
  return sources.flatMap((source) => {
    const found: Limit[] = [];
    visit(source.program, [], (call, names) => {
      const callee = nameOf(call["callee"]);
      const [place] = source.imports.get(callee ?? "") ?? [];
      if (place !== "core/platform/schema/limit.ts") return;
      const args = nodesIn(call["arguments"]);
      const [of, atTheLimit] = args.slice(-2).map((one) => one["value"]);
      const numbers = args.slice(0, -2).map((one) => numberOf(one, source));
      const name = names.join(".");
      if (name === "" || typeof of !== "string" || typeof atTheLimit !== "string") {
        throw new Error(`${source.path}: a limit is a constant, its texts are literals: ${of}`);
      }
      const [burst = 0, perSecond = 0] = numbers;
      const figure = callee === "rate" ? textOfRate(burst, perSecond) : textOf(name, burst);
      found.push({ path: source.path, of, figure, name, atTheLimit });
    });
    return found;
  });
}

/** Calls, each with the names of the constant and of the members that it is the value of. */
function visit(
  node: Node,
  names: readonly string[],
  take: (call: Node, names: readonly string[]) => void,
): void {
  if (node.type === "CallExpression") take(node, names);
  const named = { VariableDeclarator: node["id"], Property: node["key"] }[node.type];
  const own = named === undefined ? names : [...names, nameOf(named) ?? ""];
  for (const value of Object.values(node)) {
    for (const child of nodesIn(value)) visit(child, own, take);
  }
}

/** Sums and products of literals and constants, which is all that limits are. */
function evaluator(sources: ReadonlyMap<string, Source>) {
  return function numberOf(node: Node, source: Source): number {
    const { type, value, operator } = node;
    if (type === "Literal" && typeof value === "number") return value;
    if (type === "BinaryExpression") {
      const [left = 0, right = 0] = nodesIn([node["left"], node["right"]]).map((one) =>
        numberOf(one, source),
      );
      if (operator === "+") return left + right;
      if (operator === "-") return left - right;
      if (operator === "*") return left * right;
      if (operator === "/") return left / right;
    }
    const [first] = nodesIn(node["arguments"]);
    if (type === "CallExpression" && nameOf(node["callee"]) === "limit" && first) {
      return numberOf(first, source);
    }
    const name = nameOf(node) ?? "";
    const constant = source.constants.get(name);
    if (constant) return numberOf(constant, source);
    const [path = "", original = ""] = source.imports.get(name) ?? [];
    const other = sources.get(path);
    const exported = other?.constants.get(original);
    if (other && exported) return numberOf(exported, other);
    throw new Error(`${source.path}: the number of a limit is made of literals and constants`);
  };
}

/** The unit is the end of the constant's name. */
function textOf(name: string, value: number): string {
  if (/per_?seconds?$/i.test(name)) return `${textOfNumber(value)} each second`;
  if (/ms$/i.test(name)) return textOfTime(value);
  if (/seconds$/i.test(name)) return textOfTime(value * 1_000);
  if (/days$/i.test(name)) return counted(value, "day");
  if (/months$/i.test(name)) return counted(value, "month");
  return /bytes$/i.test(name) ? textOfBytes(value) : textOfNumber(value);
}

function textOfTime(ms: number): string {
  if (ms % 86_400_000 === 0) return counted(ms / 86_400_000, "day");
  if (ms % 3_600_000 === 0) return `${textOfNumber(ms / 3_600_000)} h`;
  if (ms >= 120_000 && ms % 60_000 === 0) return `${textOfNumber(ms / 60_000)} min`;
  return ms >= 1_000 ? `${textOfNumber(ms / 1_000)} s` : `${textOfNumber(ms)} ms`;
}

function textOfBytes(bytes: number): string {
  for (const [unit, size] of [
    ["GiB", 1024 ** 3],
    ["MiB", 1024 ** 2],
    ["KiB", 1024],
  ] as const) {
    if (bytes % size === 0) return `${textOfNumber(bytes / size)} ${unit}`;
  }
  return counted(bytes, "byte");
}

function textOfRate(burst: number, perSecond: number): string {
  const then =
    perSecond < 1
      ? `1 in ${textOfTime(Math.round(1_000 / perSecond))}`
      : `${textOfNumber(perSecond)} each second`;
  return `${textOfNumber(burst)}, then ${then}`;
}

function counted(value: number, unit: string): string {
  return `${textOfNumber(value)} ${unit}${value === 1 ? "" : "s"}`;
}

function textOfNumber(value: number): string {
  return value.toLocaleString("en");
}

function nodeOf(value: unknown): Node | null {
  const isNode = typeof value === "object" && value !== null && "type" in value;
  return isNode ? (value as Node) : null;
}

function nodesIn(value: unknown): Node[] {
  return (Array.isArray(value) ? value : [value]).flatMap((one) => nodeOf(one) ?? []);
}

function nameOf(value: unknown): string | undefined {
  const node = nodeOf(value);
  return node?.type === "Identifier" ? String(node["name"]) : undefined;
}
