/** Every regular expression of the product takes time in proportion to its text, whoever wrote that text. */
import { expect, test } from "bun:test";
import { parseSync } from "oxc-parser";
import { checkSync } from "recheck";
import { startMeasuring } from "#test/support/measured.ts";

const FILES = [
  "core",
  "ingest",
  "processors",
  "api",
  "panel",
  "analytics",
  "cli",
  "demo",
  "tools",
].flatMap((folder) => [...new Bun.Glob(`${folder}/**/*.{ts,tsx,mjs}`).scanSync(".")]);
/** A proof, which has the same outcome in every run. It takes milliseconds; a busy machine is many times slower. */
const TERMS = { checker: "automaton", timeout: 60_000 } as const;

/** What the checker cannot prove, and why it does no harm. */
const NO_OUTSIDER: Readonly<Record<string, string>> = {
  "-----BEGIN CERTIFICATE-----[\\s\\S]*?-----END CERTIFICATE-----": "the operator's own file",
  "<tr[^>]*><td>.*<\\/tr>\\n": "a page of our own reference, before the question is put into it",
  "<[^>]*>": "a row of our own reference",
  '("(?:[^"\\\\]|\\\\.)*")|\\b(true|false|null)\\b': "JSON of our own examples",
  "\\/+$": "the operator's own address",
  "(?: \\(alias .*\\))?(?: \\(children \\d+\\))?$":
    "a line of the engine's tree: one statement of an operator, of 20,000 characters",
  "(waybill[-_]client-)\\d+\\.\\d+\\.\\d+(?=\\.tgz|-py3)": "our own guide, by the release command",
  "(waybill-client-)\\d+\\.\\d+\\.\\d+(?=\\.tgz)": "our own README, by the release command",
  "(waybill_client-)\\d+\\.\\d+\\.\\d+(?=-py3)": "our own README, by the release command",
  "^ *([A-Z][A-Z_ ]*?) id: \\d+(.*)$":
    "a line of the engine's tree, which begins with its own words",
};

function expressionsIn(path: string, text: string): { pattern: string; flags: string }[] {
  const found: { pattern: string; flags: string }[] = [];
  JSON.stringify(parseSync(path, text).program, (_, node) => {
    if (node?.type === "Literal" && node.regex) found.push(node.regex);
    return typeof node === "bigint" ? `${node}` : node;
  });
  return found;
}

const expressions = new Map<string, { pattern: string; flags: string; path: string }>();
for (const path of FILES) {
  for (const one of expressionsIn(path, await Bun.file(path).text())) {
    expressions.set(`/${one.pattern}/${one.flags}`, { ...one, path });
  }
}

const verdictOf = (pattern: string, flags: string) => checkSync(pattern, flags, TERMS).status;

test("every regular expression is linear", async () => {
  const measuring = startMeasuring("Bad input", "regular expressions, by a checker of their time");
  expect(expressions.size).toBeGreaterThan(100);
  const faulty: string[] = [];
  for (const [text, { pattern, flags, path }] of expressions) {
    if (Object.hasOwn(NO_OUTSIDER, pattern)) continue;
    const verdict = verdictOf(pattern, flags);
    if (verdict !== "safe") faulty.push(`${path}: ${text} is ${verdict}`);
  }
  expect(faulty).toEqual([]);
  const unproven = Object.keys(NO_OUTSIDER).length;
  await measuring.done({
    inputs: expressions.size,
    further: {
      "proven to be linear": expressions.size - unproven,
      "not proven, and never given an outsider's text": unproven,
      "not linear": faulty.length,
    },
  });
}, 300_000);

test("one that is not would be found, wherever it stands", () => {
  const [found] = expressionsIn("a.tsx", "export const A = () => <p>{/(a+)+$/u.test('a')}</p>;");
  expect(found).toEqual({ pattern: "(a+)+$", flags: "u" });
  expect(verdictOf("(a+)+$", "")).toBe("vulnerable");
  expect(verdictOf("\\s+$", "")).toBe("vulnerable");
});

test("no exception outlives its expression", () => {
  const known = new Set([...expressions.values()].map(({ pattern }) => pattern));
  expect(Object.keys(NO_OUTSIDER).filter((pattern) => !known.has(pattern))).toEqual([]);
});
