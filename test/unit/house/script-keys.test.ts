/**
 * Every key that a script touches is one of its KEYS: Redis then refuses a call before its first write where the slot of a key
 * has moved. This reads the sources: a key argument must be `KEYS[…]`, or a name that nothing but such values is assigned to.
 */
import { expect, test } from "bun:test";
import { SCRIPT_FILES, scriptName } from "#test/support/scripts/script-files.ts";
import { CALLED } from "#test/support/scripts/script-names.ts";

/** `run-together.lua` wraps other scripts. */
const SCRIPTS = SCRIPT_FILES.filter(
  (path) => !["run-together", ...CALLED].includes(scriptName(path)),
);

const WITHOUT_KEYS = new Set(["TIME"]);
/** All of their arguments are keys. */
const KEYS_ONLY = new Set(["DEL", "EXISTS", "MGET", "UNLINK"]);

/** @returns the calls whose key is not one of KEYS */
function undeclaredKeys(source: string): string[] {
  const text = source.replace(/--[^\n]*/g, "");
  const calls = [...text.matchAll(/\bp?call\(\s*'(\w+)'/g)].map((match) => {
    const command = (match[1] ?? "").toUpperCase();
    const inside = argumentsFrom(text, (match.index ?? 0) + match[0].indexOf("(") + 1);
    return { command, args: inside.slice(1) };
  });
  const isKey = keyNames(text);
  return calls.flatMap(({ command, args }) => {
    if (WITHOUT_KEYS.has(command)) return [];
    const keys = KEYS_ONLY.has(command) ? args : args.slice(0, 1);
    return keys.length > 0 && keys.every(isKey) ? [] : [`${command} ${keys.join(", ")}`];
  });
}

/** Names that only keys are ever assigned to; `.name` stands for a field of whatever table. */
function keyNames(text: string): (expression: string) => boolean {
  const values = new Map<string, string[]>();
  const assign = (name: string, value: string) => {
    const field = name.replace(/^.*\./, ".").trim();
    values.set(field, [...(values.get(field) ?? []), value.trim()]);
  };
  for (const [, names = "", value = ""] of statements(text)) {
    const left = split(names);
    const right = split(value);
    const all = /^unpack\(KEYS\b/.test(value.trim());
    left.forEach((name, at) => {
      assign(name, all ? "KEYS[0]" : (right[at] ?? ""));
    });
  }
  for (const [, name = "", at = 0] of fields(text))
    assign(`.${name}`, split(text.slice(at))[0] ?? "");
  for (const [, names = ""] of text.matchAll(/\bfor ([\w, ]+?) (?:in|=)/g)) {
    for (const name of names.split(",")) assign(name, "a loop");
  }
  for (const match of text.matchAll(/\bfunction (\w+)\(([^)]*)\)/g)) {
    const [, name = "", names = ""] = match;
    const uses = [...text.matchAll(new RegExp(`(?<!function )\\b${name}\\(`, "g"))];
    for (const use of uses) {
      const given = argumentsFrom(text, (use.index ?? 0) + use[0].length);
      split(names).forEach((parameter, at) => {
        assign(parameter, given[at] ?? "");
      });
    }
  }
  let known = new Set(values.keys());
  const isKey = (expression: string) =>
    /^KEYS\[[^[\]]*\]$/.test(expression) ||
    (/^\w+$/.test(expression) && known.has(expression)) ||
    (/^\w+\.\w+$/.test(expression) && known.has(expression.replace(/^\w+/, "")));
  for (let before = -1; before !== known.size; ) {
    before = known.size;
    known = new Set([...known].filter((name) => values.get(name)?.every(isKey)));
  }
  return isKey;
}

/** `names = values`, one statement a line. */
function statements(text: string): string[][] {
  const lines = text
    .replace(/\b(?:then|do|else|repeat)\b/g, "\n")
    .replace(/\b(?:end|return)\b/g, "\n")
    .split("\n");
  return lines.flatMap((line) => {
    const found = /^\s*(?:local\s+)?([\w.,\s[\]#+*]+?)\s*=(?!=)\s*(.*)$/.exec(line);
    return found ? [[...found]] : [];
  });
}

/** Fields of table constructors: `{ name = value` and `, name = value` inside braces, with the position of their values. */
function fields(text: string): [string, string, number][] {
  const found: [string, string, number][] = [];
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "{") depth += 1;
    if (text[at] === "}") depth -= 1;
    const field = depth > 0 && /^[{,]\s*(\w+)\s*=(?!=)\s*/.exec(text.slice(at, at + 80));
    if (field) found.push([field[0], field[1] ?? "", at + field[0].length]);
  }
  return found;
}

/** What stands between commas from here to the bracket that ends it. */
function argumentsFrom(text: string, from: number): string[] {
  return split(text.slice(from));
}

function split(text: string): string[] {
  const parts = [""];
  let depth = 0;
  let quote = "";
  for (const character of text) {
    if (quote !== "") quote = character === quote ? "" : quote;
    else if (character === "'" || character === '"') quote = character;
    else if ("([{".includes(character)) depth += 1;
    else if (")]}".includes(character)) depth -= 1;
    if (depth < 0) break;
    if (depth === 0 && quote === "" && character === ",") parts.push("");
    else parts[parts.length - 1] += character;
  }
  return parts.map((part) => part.trim());
}

test.each(SCRIPTS)("%s touches no key but those of KEYS", async (path) => {
  expect(undeclaredKeys(await Bun.file(path).text())).toEqual([]);
});

test.each([
  ["a key built in the call", "redis.call('GET', ARGV[1] .. ':d:' .. id)"],
  ["a key built before it", "local key = ARGV[1] .. ':x'\nredis.call('GET', key)"],
  ["a name that is a key only sometimes", "local key = KEYS[1]\nkey = ARGV[2]\ncall('DEL', key)"],
  ["a key given to a function", "local function read(key) call('GET', key) end\nread(ARGV[1])"],
  ["a field of a table", "local one = { key = tag .. ':q' }\nredis.call('LLEN', one.key)"],
  ["a loop", "for _, key in ipairs(ARGV) do redis.call('DEL', key) end"],
  ["the second key of several", "redis.call('EXISTS', KEYS[1], ARGV[1])"],
])("%s is found", (_, source) => {
  expect(undeclaredKeys(source)).toHaveLength(1);
});
