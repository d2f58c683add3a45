/**
 * Renders the templates of a Helm chart where there is no `helm`: the part of its language that ours uses, and an error for
 * anything else. Where `helm` is installed, the test compares.
 */
import { join } from "node:path";
import { Glob } from "bun";

type Value = unknown;

interface Scope {
  readonly root: Value;
  readonly dot: Value;
  readonly vars: Readonly<Record<string, Value>>;
}

type Node =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "out"; readonly expression: string }
  | {
      readonly kind: "if";
      readonly branches: ReadonlyArray<readonly [condition: string | null, body: readonly Node[]]>;
    }
  | {
      readonly kind: "range";
      readonly key: string;
      readonly item: string;
      readonly over: string;
      readonly body: readonly Node[];
    };

/** @param changes members of the values, by their paths with dots */
export async function renderChart(
  folder: string,
  release: string,
  changes: Readonly<Record<string, Value>> = {},
): Promise<object[]> {
  const values = Bun.YAML.parse(await Bun.file(join(folder, "values.yaml")).text()) as object;
  for (const [path, value] of Object.entries(changes)) change(values, path.split("."), value);
  const chart = Bun.YAML.parse(await Bun.file(join(folder, "Chart.yaml")).text()) as {
    readonly appVersion: string;
  };
  const root = {
    Values: values,
    Chart: { AppVersion: chart.appVersion },
    Release: { Name: release },
  };
  const paths = [...new Glob("templates/*.yaml").scanSync(folder)].sort();
  const texts = await Promise.all(paths.map((path) => Bun.file(join(folder, path)).text()));
  return texts.flatMap((text) => {
    const rendered = render(parse(tokensOf(text)), { root, dot: root, vars: {} });
    return documentsOf(rendered);
  });
}

/** Those of a text of YAML that are not empty. */
export function documentsOf(text: string): object[] {
  return text
    .split(/^---$/m)
    .map((part) => Bun.YAML.parse(part))
    .filter((part): part is object => typeof part === "object" && part !== null);
}

function change(values: object, [name = "", ...rest]: readonly string[], value: Value): void {
  const members = values as Record<string, object>;
  if (rest.length === 0) Object.assign(members, { [name]: value });
  else change(members[name] ?? {}, rest, value);
}

/** Texts and actions in turn; a hyphen at an action's brace takes the white space beside it. */
function tokensOf(text: string): string[] {
  return text
    .replace(/\s*\{\{-/g, "{{")
    .replace(/-\}\}\s*/g, "}}")
    .split(/\{\{\s*([\s\S]*?)\s*\}\}/);
}

function parse(tokens: readonly string[]): Node[] {
  let at = 0;

  /** Until an action that ends the block, which is left to the caller. */
  function block(): Node[] {
    const nodes: Node[] = [];
    for (; at < tokens.length; at += 1) {
      const token = tokens[at] ?? "";
      if (at % 2 === 0) nodes.push({ kind: "text", text: token });
      else if (/^(end|else)\b/.test(token)) return nodes;
      else nodes.push(action(token));
    }
    return nodes;
  }

  function action(token: string): Node {
    const range = /^range \$(\w+), \$(\w+) := (.*)$/s.exec(token);
    if (range) {
      at += 1;
      const [, key = "", item = "", over = ""] = range;
      return { kind: "range", key, item, over, body: block() };
    }
    if (!token.startsWith("if ")) return { kind: "out", expression: token };
    const branches: Array<readonly [string | null, readonly Node[]]> = [];
    for (let word = token; word !== "end"; word = tokens[at] ?? "end") {
      at += 1;
      branches.push([word === "else" ? null : word.replace(/^(else )?if /, ""), block()]);
    }
    return { kind: "if", branches };
  }

  return block();
}

function render(nodes: readonly Node[], scope: Scope): string {
  return nodes.map((node) => renderNode(node, scope)).join("");
}

function renderNode(node: Node, scope: Scope): string {
  switch (node.kind) {
    case "text":
      return node.text;
    case "out":
      return String(evaluate(node.expression, scope));
    case "if": {
      const chosen = node.branches.find(
        ([condition]) => condition === null || isTrue(evaluate(condition, scope)),
      );
      return chosen ? render(chosen[1], scope) : "";
    }
    case "range": {
      const entries = Object.entries(evaluate(node.over, scope) as object);
      entries.sort(([one], [other]) => (one < other ? -1 : 1));
      return entries
        .map(([key, item]) => {
          const vars = { ...scope.vars, [node.key]: key, [node.item]: item };
          return render(node.body, { ...scope, dot: item, vars });
        })
        .join("");
    }
  }
}

function isTrue(value: Value): boolean {
  if (typeof value === "object" && value !== null) return Object.keys(value).length > 0;
  return Boolean(value);
}

const FUNCTIONS: Readonly<Record<string, (...values: Value[]) => Value>> = {
  add: (...values) => values.reduce<number>((sum, value) => sum + Number(value), 0),
  and: (...values) => values.find((value) => !isTrue(value)) ?? values.at(-1),
  or: (...values) => values.find(isTrue) ?? values.at(-1),
  not: (value) => !isTrue(value),
  eq: (one, other) => one === other,
  default: (fallback, value) => (isTrue(value) ? value : fallback),
  list: (...values) => values,
  dict: (...values) =>
    Object.fromEntries(
      values.flatMap((key, at) => (at % 2 === 0 ? [[String(key), values[at + 1]]] : [])),
    ),
  quote: (value) => JSON.stringify(String(value)),
  toJson: (value) => JSON.stringify(value),
};

/** A pipeline: what comes before a bar is the last argument of what follows it. */
function evaluate(expression: string, scope: Scope): Value {
  const words = expression.match(/"[^"]*"|[()|]|[^\s()|]+/g) ?? [];
  let at = 0;

  function pipeline(): Value {
    let value = call([]);
    while (words[at] === "|") {
      at += 1;
      value = call([value]);
    }
    return value;
  }

  function call(last: readonly Value[]): Value {
    const name = words[at] ?? "";
    const known = FUNCTIONS[name];
    if (!known) return operand();
    at += 1;
    const values: Value[] = [];
    while (at < words.length && words[at] !== "|" && words[at] !== ")") values.push(operand());
    return known(...values, ...last);
  }

  function operand(): Value {
    const word = words[at] ?? "";
    at += 1;
    if (word === "(") {
      const value = pipeline();
      at += 1;
      return value;
    }
    if (/^["\d]/.test(word)) return JSON.parse(word);
    return valueAt(word, scope);
  }

  return pipeline();
}

function valueAt(word: string, { root, dot, vars }: Scope): Value {
  const [, start = "", path = ""] = /^(\$\w*|)((?:\.\w+)*)$/.exec(word) ?? [];
  if (start === "" && path === "") throw new Error(`not a part of the language: ${word}`);
  const from = start === "" ? dot : start === "$" ? root : vars[start.slice(1)];
  return path
    .split(".")
    .slice(1)
    .reduce<Value>((value, name) => (value as Record<string, Value>)[name], from);
}
