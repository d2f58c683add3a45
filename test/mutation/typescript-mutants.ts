/** Mutants of a TypeScript source: one small change each, at the places where its syntax tree has an operator or a value. */
import { parseSync } from "oxc-parser";

export interface Mutant {
  readonly line: number;
  readonly before: string;
  readonly after: string;
  /** The whole source with the change. */
  readonly source: string;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [member: string]: unknown;
}

interface Change {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

const OPERATORS: Readonly<Record<string, string>> = {
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "===": "!==",
  "!==": "===",
  "+": "-",
  "-": "+",
  "*": "/",
  "/": "*",
  "%": "*",
  "&&": "||",
  "||": "&&",
  "??": "&&",
};
const CALLS: Readonly<Record<string, string>> = {
  every: "some",
  some: "every",
  min: "max",
  max: "min",
  floor: "ceil",
  ceil: "floor",
};
/** What stands for a type in them is skipped; the expression in them is not. */
const CARRIERS = new Set(["TSAsExpression", "TSSatisfiesExpression", "TSNonNullExpression"]);

export function mutantsOf(path: string, source: string): Mutant[] {
  const { program, errors } = parseSync(path, source);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  const changes: Change[] = [];
  visit(program as unknown as Node, source, changes);
  return changes.map(({ start, end, text }) => ({
    line: source.slice(0, start).split("\n").length,
    before: source.slice(start, end),
    after: text,
    source: `${source.slice(0, start)}${text}${source.slice(end)}`,
  }));
}

function visit(node: Node, source: string, changes: Change[]): void {
  const isType = node.type.startsWith("TS") && !CARRIERS.has(node.type);
  if (isType || node.type === "ImportDeclaration") return;
  changes.push(...changesOf(node, source));
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (child && typeof child === "object" && "type" in child) visit(child, source, changes);
    }
  }
}

function changesOf(node: Node, source: string): Change[] {
  const part = (member: string) => node[member] as Node;
  switch (node.type) {
    case "BinaryExpression":
    case "LogicalExpression": {
      const text = OPERATORS[String(node["operator"])];
      if (text === undefined) return [];
      const [from, to] = [part("left").end, part("right").start];
      const at = source.indexOf(String(node["operator"]), from);
      return at < to ? [{ start: at, end: at + String(node["operator"]).length, text }] : [];
    }
    case "UnaryExpression":
      if (node["operator"] !== "!") return [];
      return [{ start: node.start, end: part("argument").start, text: "" }];
    case "Literal":
      if (typeof node["value"] === "boolean") return [replaced(node, String(!node["value"]))];
      if (typeof node["value"] === "number") return [replaced(node, String(node["value"] + 1))];
      return [];
    case "IfStatement":
    case "ConditionalExpression": {
      const test = part("test");
      return [replaced(test, "true"), replaced(test, "false")];
    }
    case "MemberExpression": {
      const property = part("property");
      const text = node["computed"] ? undefined : CALLS[String(property["name"])];
      return text === undefined ? [] : [replaced(property, text)];
    }
    case "ExpressionStatement":
      return [replaced(node, ";")];
    default:
      return [];
  }
}

function replaced({ start, end }: Node, text: string): Change {
  return { start, end, text };
}
